/**
 * The function sink: a message is delivered to a function of this process. Returning means delivered, throwing means
 * retry, and an Outcome that is returned or thrown is taken at its word. A synchronous handler costs no promise.
 */
import { errorText } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { oneLine } from "../message/one-line.ts";
import { DELIVERED, DUPLICATE, type Outcome } from "../message/outcome.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import { localFailure } from "./local-failure.ts";
import type { DeliverContext, Delivery, Sink } from "./sink.ts";
import type { SinkKindDefinition } from "./sink-kind.ts";

/** `delivery.payload` is the exact text; `payload` is what `parse` made of it. */
export type Handler<T = unknown> = (payload: T, delivery: Delivery, context: DeliverContext) => unknown | Promise<unknown>;

export interface FunctionSinkOptions<T = unknown> {
  /** Runs once per delivery, JSON.parse if absent. A throw rejects the message: the same text will never parse. */
  readonly parse?: ((text: string) => T) | undefined;
  readonly clock?: Clock | undefined;
  /** Asks whether an attempt whose outcome is unknown landed. */
  readonly probe?: ((delivery: Delivery, context: DeliverContext) => Promise<Outcome>) | undefined;
}

/** How much later than its moment an abort may be noticed, in exchange for fast handlers that pay nothing for it. */
const WATCH_AFTER_MS = 10;
const YOUNG_MAX = 1_000;

/** "This message will never fit": it becomes a dead letter at once. Return it from a handler, or throw it. */
export function reject(reason: string, options: { readonly code?: string } = {}): Outcome {
  return { kind: "reject", code: options.code ?? "rejected", error: reason };
}

/** "Not now": the attempt failed, and the next comes no sooner than `afterMs`. Return it from a handler, or throw it. */
export function retry(
  reason: string,
  options: { readonly afterMs?: number; readonly code?: string; readonly alert?: boolean } = {},
): Outcome {
  return {
    kind: "retry",
    code: options.code ?? "handler_retry",
    error: reason,
    retryAfterMs: options.afterMs,
    alert: options.alert,
  };
}

/** "Not from here": this process cannot do it now, another may; nothing was done and no attempt is spent. Return it, or throw it. */
export function unserved(reason: string, options: { readonly code?: string } = {}): Outcome {
  return { kind: "unserved", code: options.code ?? "handler_unserved", error: reason };
}

export function functionSink<T = unknown>(handler: Handler<T>, options: FunctionSinkOptions<T> = {}): Sink {
  const parse = options.parse ?? (JSON.parse as (text: string) => T);
  const wait = createWaiter(options.clock ?? systemClock);
  const sink: Sink = {
    kind: "function",
    deliver(delivery, context) {
      let payload: T;
      try {
        payload = parse(delivery.payload);
      } catch (thrown) {
        return { kind: "reject", code: "payload_unreadable", error: bounded(errorText(thrown)) };
      }
      try {
        const result = handler(payload, delivery, context);
        if (result === undefined) return DELIVERED;
        return isThenable(result) ? wait(result, context) : outcomeOf(result);
      } catch (thrown) {
        return outcomeOfThrow(thrown);
      }
    },
  };
  const { probe } = options;
  return probe === undefined ? sink : { ...sink, probe };
}

export const inCode = { takes: {}, create: null } as const satisfies SinkKindDefinition;

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

interface Running {
  ended: boolean;
  watch(): void;
}

/**
 * Waits for a promise, but not past the attempt's signal: a handler that outlives its deadline is left alone, and
 * whether its effect lands nobody knows. A signal costs more than most handlers, so it is read only for what still
 * runs after WATCH_AFTER_MS, with one timer for all of them.
 */
function createWaiter(clock: Clock): (result: PromiseLike<unknown>, context: DeliverContext) => Promise<Outcome> {
  let young: Running[] = [];
  const watchAll = () => {
    const due = young;
    young = [];
    for (const running of due) if (!running.ended) running.watch();
  };
  return (result, context) =>
    new Promise((resolve) => {
      let signal: AbortSignal | undefined;
      const cutShort = () => resolve(unknownOutcome(context.signal));
      const end = (outcome: Outcome) => {
        running.ended = true;
        signal?.removeEventListener("abort", cutShort);
        resolve(outcome);
      };
      const running: Running = {
        ended: false,
        watch() {
          signal = context.signal;
          if (signal.aborted) cutShort();
          else signal.addEventListener("abort", cutShort, { once: true });
        },
      };
      const waiting = young.push(running);
      if (waiting === 1) clock.after(WATCH_AFTER_MS, watchAll, true);
      // I10: handlers that keep the event loop busy keep the timer from running, not the list from ending.
      if (waiting >= YOUNG_MAX) watchAll();
      result.then(
        (value) => end(outcomeOf(value)),
        (thrown) => end(outcomeOfThrow(thrown)),
      );
    });
}

function unknownOutcome(signal: AbortSignal): Outcome {
  const reason: unknown = signal.reason;
  return reason instanceof Error && reason.name === "TimeoutError"
    ? { kind: "unknown", code: "timeout", error: "the handler did not finish before its deadline" }
    : { kind: "unknown", code: "aborted", error: "the attempt was cut short while the handler ran" };
}

function outcomeOf(value: unknown): Outcome {
  return asOutcome(value) ?? DELIVERED;
}

function outcomeOfThrow(thrown: unknown): Outcome {
  return asOutcome(thrown) ?? localFailure(thrown) ?? { kind: "retry", code: "handler_error", error: bounded(errorText(thrown)) };
}

/** Null when the value is not an Outcome. Handlers are often untyped, so a known kind is completed, never trusted to be whole. */
function asOutcome(value: unknown): Outcome | null {
  if (typeof value !== "object" || value === null) return null;
  const given = value as Record<string, unknown>;
  const code = typeof given.code === "string" ? bounded(given.code, 100) : "handler_error";
  const error = bounded(typeof given.error === "string" ? given.error : "the handler gave no reason");
  switch (given.kind) {
    case "delivered":
      return DELIVERED;
    case "duplicate":
      return DUPLICATE;
    case "reject":
    case "unknown":
    case "disable":
    case "unserved":
      return { kind: given.kind, code, error };
    case "retry": {
      const afterMs = given.retryAfterMs;
      const retryAfterMs = typeof afterMs === "number" && Number.isFinite(afterMs) ? afterMs : undefined;
      return { kind: "retry", code, error, retryAfterMs, alert: given.alert === true };
    }
    case "interrupted":
    case "made":
    case "lost":
      // Not answers a sink may give: nothing was delivered, so it counts as a failed attempt.
      return { kind: "retry", code: "handler_error", error: `the handler returned "${given.kind}", which only a worker may say` };
    default:
      return null;
  }
}

function bounded(text: string, bytesMax: number = LIMITS.errorBytesMax): string {
  return oneLine(text, bytesMax);
}
