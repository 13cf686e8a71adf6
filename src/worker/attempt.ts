/**
 * One try at a sink, a message on its way to an outcome: an attempt under a claim, or deliver()'s before anything is stored. It has one
 * total deadline, an abort signal that is made only if the sink reads it, and costs no promise where the sink needs none. A throw is
 * a retry; what is cut short after it began is `unknown`.
 */
import { errorText } from "../message/errors.ts";
import type { ClaimedMessage } from "../message/message.ts";
import type { Outcome } from "../message/outcome.ts";
import type { Settle } from "../message/settlement.ts";
import type { AttemptSpan, Spans } from "../observe/spans.ts";
import type { DeliverContext, Delivery, Sink } from "../sink/sink.ts";
import type { SinkHandle } from "../topic/topic-table.ts";
import type { LaneEntry } from "./lanes.ts";
import type { LeaseState } from "./leases.ts";

export type ProbeKind = "free" | "charged";
export type Cut = "deadline" | "lost" | "shutdown" | "caller";

/** What a sink is told of a message. */
export type Sent = Pick<
  ClaimedMessage,
  "id" | "topic" | "tenantId" | "key" | "payload" | "traceparent" | "schemaVersion" | "attempt"
>;

export class Try<Message extends Sent = Sent> implements DeliverContext {
  readonly message: Message;
  handle: SinkHandle | null = null;
  timeoutMs: number;
  startedMs = 0;
  /** Why and when it was aborted. */
  cut: Cut | null = null;
  cutMs = 0;
  /** It has its outcome; a late answer changes nothing. */
  over: boolean = false;
  /** A person should look at it. */
  alert = false;
  /** Where it is traced; ended with its outcome by who runs it. */
  span: AttemptSpan | null = null;
  #controller: AbortController | undefined;
  #aborted: ((reason: Error) => void) | undefined;

  constructor(message: Message, timeoutMs: number) {
    this.message = message;
    this.timeoutMs = timeoutMs;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.cut !== null) this.#controller.abort(cutReason(this.cut, this.timeoutMs));
    }
    return this.#controller.signal;
  }

  onAbort(listener: (reason: Error) => void): void {
    this.#aborted = listener;
    if (this.cut !== null) listener(cutReason(this.cut, this.timeoutMs));
  }

  abort(cut: Cut, nowMs: number): void {
    if (this.cut !== null) return;
    this.cut = cut;
    this.cutMs = nowMs;
    if (!this.#controller && !this.#aborted) return;
    const reason = cutReason(cut, this.timeoutMs);
    this.#controller?.abort(reason);
    this.#aborted?.(reason);
  }
}

/** A try under a claim. */
export class Attempt extends Try<ClaimedMessage> {
  readonly lane: LaneEntry;
  readonly lease: LeaseState;
  /** Claimed although its breaker is open, to see whether the receiver is back; `free`: it is not charged for it. */
  probe: ProbeKind | undefined;
  /** What is to be written, once it is known. */
  settle: Settle | null = null;

  constructor(message: ClaimedMessage, lane: LaneEntry, lease: LeaseState) {
    super(message, 0);
    this.lane = lane;
    this.lease = lease;
  }
}

function cutReason(cut: Cut, timeoutMs: number): Error {
  switch (cut) {
    case "deadline":
      return new DOMException(`the attempt took longer than ${timeoutMs} ms`, "TimeoutError");
    case "lost":
      return new DOMException("the claim was lost: another worker owns the message now", "AbortError");
    case "shutdown":
      return new DOMException("the worker is shutting down", "AbortError");
    case "caller":
      return new DOMException("the caller's signal was aborted", "AbortError");
  }
}

function deliveryOf(message: Sent, span: AttemptSpan | null): Delivery {
  const { id, key } = message;
  return {
    id,
    topic: message.topic,
    tenantId: message.tenantId,
    idempotencyKey: key ?? id,
    key,
    payload: message.payload,
    attempt: message.attempt,
    traceparent: span?.traceparent ?? message.traceparent,
    schemaVersion: message.schemaVersion,
  };
}

/** Runs the sink. The promise, where there is one, never rejects. */
export function runTry(attempt: Try, sink: Sink, spans: Spans | null): Outcome | Promise<Outcome> {
  const span = spans === null ? null : spans.attempt(attempt.message, !(attempt instanceof Attempt));
  attempt.span = span;
  const delivery = deliveryOf(attempt.message, span);
  let answer: Outcome | Promise<Outcome>;
  try {
    answer = span ? span.run(() => sink.deliver(delivery, attempt)) : sink.deliver(delivery, attempt);
  } catch (error) {
    return thrown(error, attempt);
  }
  if (isPromise(answer)) {
    const failed = (error: unknown): Outcome => thrown(error, attempt);
    return sink.probe
      ? answer.then((outcome) => probed(valid(outcome), delivery, attempt, sink)).catch(failed)
      : answer.then(valid, failed);
  }
  const outcome = valid(answer);
  return outcome.kind === "unknown" && sink.probe ? probed(outcome, delivery, attempt, sink) : outcome;
}

/** An unknown effect is asked about before it is judged, within the same deadline. */
async function probed(outcome: Outcome, delivery: Delivery, attempt: Try, sink: Sink): Promise<Outcome> {
  if (outcome.kind !== "unknown" || !sink.probe || attempt.cut === "lost") return outcome;
  try {
    const answer = valid(await sink.probe(delivery, attempt));
    return answer.kind === "delivered" || answer.kind === "duplicate" || answer.kind === "retry" ? answer : outcome;
  } catch {
    return outcome;
  }
}

function isPromise(value: unknown): value is Promise<Outcome> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

function thrown(error: unknown, attempt: Try): Outcome {
  if (attempt.cut !== null) return cutShort(attempt);
  return { kind: "retry", code: "handler_error", error: errorText(error) };
}

const KINDS: ReadonlySet<string> = new Set(["delivered", "duplicate", "retry", "reject", "unknown", "disable", "unserved"]);

/** A sink written in plain JavaScript may return anything; what is not an answer of a sink is a failed attempt. */
function valid(outcome: Outcome | null | undefined): Outcome {
  if (outcome && KINDS.has(outcome.kind)) return outcome;
  const kind = String(outcome?.kind);
  return { kind: "retry", code: "invalid_outcome", error: `the sink returned ${kind}, which is not an outcome of a sink` };
}

/** The outcome of a try that was aborted before its sink answered. */
export function cutShort(attempt: Try): Outcome {
  if (attempt.cut === "shutdown") return { kind: "interrupted" };
  const aborted = attempt.cut === "caller";
  const error = aborted ? "the try was cut short" : `no answer within ${Math.round(attempt.timeoutMs)} ms`;
  return { kind: "unknown", code: aborted ? "aborted" : "timeout", error: `${error}: whether it took effect is not known` };
}

/** Our own shutdown is nobody's failure: only an answer that ends the message counts after it. */
export function afterCut(attempt: Try, outcome: Outcome): Outcome {
  if (attempt.cut !== "shutdown") return outcome;
  const ended = outcome.kind === "delivered" || outcome.kind === "duplicate" || outcome.kind === "reject";
  return ended || outcome.kind === "unserved" ? outcome : { kind: "interrupted" };
}
