/**
 * The webhook sink: an http sink that signs each attempt by Standard Webhooks 1.0.0. The id is the message's and stays
 * the same over retries, the timestamp is the attempt's. Everything but a 2xx is tried again, and 410 disables the sink.
 */
import { errorText } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { oneLine } from "../message/one-line.ts";
import type { SinkConfig } from "../message/topic.ts";
import { systemClock } from "../platform/clock.ts";
import { checkSecret } from "../webhook/secret.ts";
import { signWebhook } from "../webhook/sign.ts";
import { createPoster, type PosterDeps, type PosterOptions, posterOptions } from "./poster.ts";
import { messageHeaders } from "./request-headers.ts";
import type { Sink } from "./sink.ts";
import type { SinkFault, SinkKindDefinition } from "./sink-kind.ts";
import { outcomeOfAnswer, type Verdict } from "./verdict.ts";

export interface WebhookSinkOptions extends PosterOptions {
  /** `whsec_…`, the newest first; every one of them signs, so that receivers can change over in their own time. */
  readonly secrets: readonly string[];
}

export function webhookSink(options: WebhookSinkOptions, deps: PosterDeps = {}): Sink {
  const { secrets } = options;
  const clock = deps.clock ?? systemClock;
  const poster = createPoster(options, deps);
  return {
    kind: "webhook",
    async deliver(delivery, context) {
      if (delivery.id.includes(".")) {
        return { kind: "reject", code: "request_invalid", error: "a webhook id must not contain a dot" };
      }
      const headers = messageHeaders(delivery);
      try {
        const signed = signWebhook({ id: delivery.id, body: delivery.payload, secrets, atMs: clock.wallMs() });
        headers.push(...Object.entries(signed).flat());
      } catch (thrown) {
        return { kind: "unserved", code: "signing_failed", error: oneLine(errorText(thrown), LIMITS.errorBytesMax) };
      }
      const answer = await poster.post(delivery.payload, headers, context);
      return outcomeOfAnswer(answer, webhookVerdict, clock.wallMs());
    },
    close: () => poster.close(),
  };
}

const SECRETS_MAX = 10;

export const webhook = {
  takes: { url: "needed", secrets: "needed" },
  check: checkSecrets,
  create: (config, deps) => webhookSink({ ...posterOptions(config), secrets: config.secrets ?? [] }, deps),
} as const satisfies SinkKindDefinition;

function* checkSecrets({ secrets = [] }: SinkConfig): Generator<SinkFault> {
  if (!Array.isArray(secrets)) yield { field: "secrets", detail: "must be a list of text" };
  else if (secrets.length > SECRETS_MAX) yield { field: "secrets", detail: `may be at most ${SECRETS_MAX}` };
  else {
    const detail = secrets.map(checkSecret).find((reason) => reason !== null);
    if (detail !== undefined) yield { field: null, detail };
  }
}

export function webhookVerdict(status: number): Verdict {
  if (status >= 200 && status < 300) return "delivered";
  return status === 410 ? "disable" : "retry";
}
