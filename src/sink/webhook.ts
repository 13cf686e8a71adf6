/**
 * The webhook sink: an http sink that signs each attempt by Standard Webhooks 1.0.0. The id is the message's and stays
 * the same over retries, the timestamp is the attempt's. Everything but a 2xx is tried again, and 410 disables the sink.
 */
import { errorText, MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { systemClock } from "../platform/clock.ts";
import { oneLine } from "./one-line.ts";
import { createPoster, type PosterDeps, type PosterOptions } from "./poster.ts";
import { messageHeaders } from "./request-headers.ts";
import { checkSecret, signWebhook } from "./sign-webhook.ts";
import type { Sink } from "./sink.ts";
import { outcomeOfAnswer, type Verdict } from "./verdict.ts";

export interface WebhookSinkOptions extends PosterOptions {
  /** `whsec_…`, the newest first; every one of them signs, so that receivers can change over in their own time. */
  readonly secrets: readonly string[];
}

export function webhookSink(options: WebhookSinkOptions, deps: PosterDeps = {}): Sink {
  const { secrets } = options;
  if (secrets.length === 0) throw new MakegoodError("sink_refused", "a webhook sink needs a secret");
  for (const secret of secrets) {
    const reason = checkSecret(secret);
    if (reason !== null) throw new MakegoodError("sink_refused", reason);
  }
  const clock = deps.clock ?? systemClock;
  const poster = createPoster(options, deps);
  return {
    kind: "webhook",
    async deliver(delivery, context) {
      if (delivery.id.includes(".")) {
        return { kind: "reject", code: "request_invalid", error: "a webhook id must not contain a dot" };
      }
      const timestampS = Math.floor(clock.wallMs() / 1_000);
      const headers = messageHeaders(delivery);
      headers.push("webhook-id", delivery.id, "webhook-timestamp", String(timestampS));
      try {
        headers.push("webhook-signature", signWebhook(delivery.id, timestampS, delivery.payload, secrets));
      } catch (thrown) {
        return { kind: "unserved", code: "signing_failed", error: oneLine(errorText(thrown), LIMITS.errorBytesMax) };
      }
      const answer = await poster.post(delivery.payload, headers, context);
      return outcomeOfAnswer(answer, webhookVerdict, clock.wallMs());
    },
    close: () => poster.close(),
  };
}

export function webhookVerdict(status: number): Verdict {
  if (status >= 200 && status < 300) return "delivered";
  return status === 410 ? "disable" : "retry";
}
