/**
 * The notify sink tells people: with a url it posts `{"text": …}` as Slack and its likes take it, without one it writes a
 * log line. The text is the payload's `text` where there is one, else a summary that cannot mention or ping anybody.
 */
import { errorText } from "../message/errors.ts";
import { readObject } from "../message/json.ts";
import { cutToBytes, oneLine } from "../message/one-line.ts";
import { DELIVERED } from "../message/outcome.ts";
import { systemClock } from "../platform/clock.ts";
import { createPoster, type PosterDeps, type PosterOptions, posterOptions } from "./poster.ts";
import { messageHeaders } from "./request-headers.ts";
import type { Delivery, Sink } from "./sink.ts";
import type { LogLine, SinkKindDefinition } from "./sink-kind.ts";
import { httpVerdict, outcomeOfAnswer } from "./verdict.ts";

export interface NotifySinkOptions extends Omit<PosterOptions, "url"> {
  readonly url?: string | undefined;
}

export interface NotifySinkDeps extends PosterDeps {
  readonly log: LogLine;
}

// Slack cuts a text at 40,000 characters; a summary is for reading, not for keeping.
const TEXT_BYTES_MAX = 40_000;
const SUMMARY_BYTES_MAX = 1_000;
const LOG_BYTES_MAX = 4_000;

export function notifySink(options: NotifySinkOptions, deps: NotifySinkDeps): Sink {
  const { url } = options;
  return url === undefined ? logSink(deps.log) : postSink({ ...options, url }, deps);
}

export const notify = {
  takes: { url: "allowed" },
  create: (config, deps) => notifySink(posterOptions(config), deps),
} as const satisfies SinkKindDefinition;

function logSink(log: LogLine): Sink {
  return {
    kind: "notify",
    deliver(delivery) {
      const text = givenText(delivery.payload) ?? delivery.payload;
      try {
        log(oneLine(`notify ${delivery.topic} ${delivery.id}: ${text}`, LOG_BYTES_MAX));
        return DELIVERED;
      } catch (thrown) {
        return { kind: "retry", code: "log_failed", error: oneLine(errorText(thrown), 1_000) };
      }
    },
  };
}

function postSink(options: PosterOptions, deps: NotifySinkDeps): Sink {
  const clock = deps.clock ?? systemClock;
  const poster = createPoster(options, deps);
  return {
    kind: "notify",
    async deliver(delivery, context) {
      const body = JSON.stringify({ text: notifyText(delivery) });
      const answer = await poster.post(body, messageHeaders(delivery), context);
      return outcomeOfAnswer(answer, httpVerdict, clock.wallMs());
    },
    close: () => poster.close(),
  };
}

/** The text that is posted for a message. */
export function notifyText(delivery: Pick<Delivery, "id" | "topic" | "payload">): string {
  const text = givenText(delivery.payload);
  if (text !== null) return cutToBytes(text, TEXT_BYTES_MAX);
  const summary = `${delivery.topic} ${delivery.id}: ${oneLine(delivery.payload, SUMMARY_BYTES_MAX)}`;
  // `<!channel>` in a payload must stay text; these three are all that Slack gives a meaning to.
  return summary.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function givenText(payload: string): string | null {
  const text = readObject(payload)?.text;
  return typeof text === "string" && text !== "" ? text : null;
}
