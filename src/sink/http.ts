/**
 * The http sink: one POST with the payload's exact bytes and the key as Idempotency-Key; the status decides.
 * "Try again" is about the world (5xx, 429, not connected), "never" is about the message (4xx, redirects), and a
 * request that was sent but not answered is `unknown`.
 */
import { isObject } from "../message/json.ts";
import type { Outcome } from "../message/outcome.ts";
import { systemClock } from "../platform/clock.ts";
import type { Answer } from "./exchange.ts";
import { createPoster, type PosterDeps, type PosterOptions, posterOptions } from "./poster.ts";
import { messageHeaders } from "./request-headers.ts";
import type { DeliverContext, Delivery, Sink } from "./sink.ts";
import type { SinkFault, SinkKindDefinition } from "./sink-kind.ts";
import { httpVerdict, outcomeOfAnswer, type StatusMap } from "./verdict.ts";

export interface HttpSinkOptions extends PosterOptions {
  /** Status → outcome, over the defaults; for example `{ "409": "duplicate" }`. */
  readonly statusMap?: StatusMap | undefined;
  /** Asks the receiver whether an attempt whose outcome is unknown landed. */
  readonly probe?: ((delivery: Delivery, context: DeliverContext) => Promise<Outcome>) | undefined;
}

export function httpSink(options: HttpSinkOptions, deps: PosterDeps = {}): Sink {
  const clock = deps.clock ?? systemClock;
  const poster = createPoster(options, deps);
  const verdictOf = (status: number) => options.statusMap?.[status] ?? httpVerdict(status);
  const outcomeOf = (answer: Answer): Outcome => outcomeOfAnswer(answer, verdictOf, clock.wallMs());
  const sink: Sink = {
    kind: "http",
    deliver: (delivery, context) => poster.post(delivery.payload, messageHeaders(delivery), context).then(outcomeOf),
    close: () => poster.close(),
  };
  const { probe } = options;
  return probe === undefined ? sink : { ...sink, probe };
}

const STATUS_OUTCOMES: readonly unknown[] = [
  "delivered",
  "duplicate",
  "retry",
  "reject",
  "unknown",
] satisfies StatusMap[string][];

export const http = {
  takes: { url: "needed", statusMap: "allowed" },
  check: ({ statusMap }) => (statusMap === undefined ? [] : checkStatusMap(statusMap)),
  create: (config, deps) => httpSink({ ...posterOptions(config), statusMap: config.statusMap }, deps),
} as const satisfies SinkKindDefinition;

function* checkStatusMap(statusMap: unknown): Generator<SinkFault> {
  if (!isObject(statusMap)) {
    yield { field: "statusMap", detail: "must be an object from status to outcome" };
    return;
  }
  for (const [status, outcome] of Object.entries(statusMap)) {
    const field = `statusMap.${status.slice(0, 100)}`;
    if (!/^[2-5]\d\d$/.test(status)) yield { field, detail: "is not a final HTTP status" };
    else if (!STATUS_OUTCOMES.includes(outcome)) yield { field, detail: `must be one of ${STATUS_OUTCOMES.join(", ")}` };
  }
}
