/**
 * The direct try of deliver(): the sink at once, before any store. The first try has the time that was given; at most two more follow, only
 * after transport errors that leave open what happened, and together they add 300 ms at most (CON-15, CON-42).
 */
import { errorText } from "../message/errors.ts";
import type { NewMessage } from "../message/message.ts";
import type { Outcome } from "../message/outcome.ts";
import { type Clock, sleep } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { DeliverContext, Delivery, Sink } from "../sink/sink.ts";
import { valid } from "./attempt.ts";

export const EXTRA_MS = 300;
const TRIES_MAX = 3;
const PAUSE_MS = 50;
/** A sink that was cut short says itself what that means, if it says so at once. */
const GRACE_MS = 20;

export interface Tried {
  readonly outcome: Outcome;
  readonly tries: number;
  readonly ms: number;
}

/** What a sink is told of a message. */
export type Sent = Pick<NewMessage, "id" | "topic" | "tenantId" | "key" | "payload" | "traceparent" | "schemaVersion">;

export interface TryOptions {
  readonly sink: Sink;
  readonly message: Sent;
  /** 0 for a try before the message is stored, else the attempt's number. */
  readonly attempt: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** 1: no more tries after the first, whatever it told. */
  readonly triesMax?: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

export async function tryDirectly(options: TryOptions): Promise<Tried> {
  const { clock, random, signal, timeoutMs, triesMax = TRIES_MAX } = options;
  const startedMs = clock.monotonicMs();
  let outcome = await oneTry(options, timeoutMs);
  let tries = 1;
  const untilMs = clock.monotonicMs() + EXTRA_MS;
  while (tries < triesMax && isAmbiguous(outcome) && !signal?.aborted) {
    await sleep(clock, PAUSE_MS * (0.5 + random.next() / 2), signal);
    const leftMs = untilMs - clock.monotonicMs() - GRACE_MS;
    if (leftMs < PAUSE_MS || signal?.aborted) break;
    // Half of what is left, so that a third try has its turn too.
    const again = await oneTry(options, tries + 1 < triesMax ? leftMs / 2 : leftMs);
    tries++;
    // A short try that only ran out of time knows less than what came before it.
    if (!(again.kind === "unknown" && again.code === "timeout")) outcome = again;
  }
  return { outcome, tries, ms: clock.monotonicMs() - startedMs };
}

/** The connection broke under the request: it may have arrived or not. A status, a refusal or a full deadline is an answer. */
function isAmbiguous(outcome: Outcome): boolean {
  if (outcome.kind !== "unknown" && outcome.kind !== "retry") return false;
  return outcome.code === "connection_reset" || outcome.code === "connection_failed";
}

function deliveryOf(message: Sent, attempt: number): Delivery {
  const { id, topic, tenantId, key, payload, traceparent, schemaVersion } = message;
  // I7: the same identity as in every later attempt.
  return { id, topic, tenantId, idempotencyKey: key ?? id, key, payload, attempt, traceparent, schemaVersion };
}

function oneTry({ sink, message, attempt, signal, clock }: TryOptions, timeoutMs: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const controller = new AbortController();
    const context: DeliverContext = { signal: controller.signal, timeoutMs };
    const cut = (code: "timeout" | "aborted", reason: unknown): void => {
      if (controller.signal.aborted) return;
      controller.abort(reason);
      const error = code === "timeout" ? `no answer within ${Math.round(timeoutMs)} ms` : "the try was cut short";
      grace = clock.after(GRACE_MS, () =>
        finish({ kind: "unknown", code, error: `${error}: whether it took effect is not known` }),
      );
    };
    const aborted = (): void => cut("aborted", signal?.reason);
    let grace = clock.after(timeoutMs, () => cut("timeout", new DOMException("the direct try took too long", "TimeoutError")));
    const finish = (outcome: Outcome): void => {
      grace.cancel();
      signal?.removeEventListener("abort", aborted);
      resolve(outcome);
    };
    signal?.addEventListener("abort", aborted, { once: true });
    void run(sink, deliveryOf(message, attempt), context).then(finish);
    if (signal?.aborted) aborted();
  });
}

async function run(sink: Sink, delivery: Delivery, context: DeliverContext): Promise<Outcome> {
  try {
    const outcome = valid(await sink.deliver(delivery, context));
    if (outcome.kind !== "unknown" || !sink.probe || context.signal.aborted) return outcome;
    const answer = valid(await sink.probe(delivery, context).catch((): Outcome => outcome));
    return answer.kind === "delivered" || answer.kind === "duplicate" || answer.kind === "retry" ? answer : outcome;
  } catch (error) {
    return { kind: "retry", code: "handler_error", error: errorText(error) };
  }
}
