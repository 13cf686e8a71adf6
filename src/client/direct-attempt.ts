/**
 * An attempt that its caller waits for: deliver()'s, before the message is stored or under a claim of its own. The first try has the time that
 * was given; at most two more follow, only after transport errors that leave open what happened, and together they add 300 ms at
 * most (CON-15, CON-42).
 */
import type { Outcome } from "../message/outcome.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, sleep } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { Sink } from "../sink/sink.ts";
import type { Why } from "../topic/rest.ts";
import type { TopicEntry, TopicTable } from "../topic/topic-table.ts";
import { cutShort, runTry, type Sent, Try } from "../worker/attempt.ts";
import type { Breakers } from "../worker/breaker/breakers.ts";
import { noteOutcome } from "../worker/breaker/note-outcome.ts";

export const EXTRA_MS = 300;
const TRIES_MAX = 3;
const PAUSE_MS = 50;
/** A sink that was cut short says itself what that means, if it says so at once. */
const GRACE_MS = 20;

export interface Tried {
  readonly outcome: Outcome;
  readonly tries: number;
  readonly ms: number;
  /** Made although the breaker is open, to see whether the receiver is back. */
  readonly probe: boolean;
}

/** What stands in the way of a try. */
export type Obstacle = Why;

export interface DirectAttemptsDeps {
  readonly topics: TopicTable;
  readonly breakers: Breakers;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
}

export class DirectAttempts {
  readonly #deps: DirectAttemptsDeps;
  /** Topics of which a single try is allowed now, and under way. */
  readonly #probing = new Set<string>();

  constructor(deps: DirectAttemptsDeps) {
    this.#deps = deps;
  }

  /** Why nothing of the topic, or of this tenant in it, may be tried here now; null: it may. */
  obstacle(entry: TopicEntry, tenantId: string | null): Obstacle | null {
    const { paused, disabledReason, breaker: stored } = entry.record;
    if (paused) return { code: "topic_paused", error: "the topic is paused" };
    if (disabledReason !== null) return { code: "sink_disabled", error: disabledReason };
    if (!this.#deps.topics.sink(entry)) return { code: "no_sink", error: "this process has no sink for the topic" };
    const nowMs = this.#deps.clock.monotonicMs();
    const { why, untilMs } = entry.rest;
    if (why && (nowMs < untilMs || this.#probing.has(entry.name))) return why;
    const breaker = this.#deps.breakers.of(entry.name);
    const admits = breaker.admits(nowMs, tenantId);
    if (admits === "none") breaker.seekProbe(nowMs, tenantId);
    if (admits !== "none") return null;
    return { code: "breaker_open", error: stored.reason ?? "the topic's breaker is open" };
  }

  async run(entry: TopicEntry, message: Sent, timeoutMs: number, signal?: AbortSignal): Promise<Tried> {
    const { topics, clock } = this.#deps;
    const handle = topics.sink(entry);
    if (!handle)
      return { outcome: { kind: "unserved", code: "no_sink", error: "the topic's sink is gone" }, tries: 0, ms: 0, probe: false };
    const startedMs = clock.monotonicMs();
    const breaker = this.#deps.breakers.of(entry.name);
    const probe = breaker.admits(startedMs, message.tenantId) === "one";
    if (probe) breaker.take(message.tenantId, 1);
    const alone = entry.rest.why !== null;
    if (alone) this.#probing.add(entry.name);
    handle.users++;
    try {
      const { last, outcome, tries } = await this.#tries(handle.sink, message, timeoutMs, signal);
      const nowMs = clock.monotonicMs();
      last.handle = handle;
      last.startedMs = startedMs;
      // What the caller cut short says nothing about the receiver.
      if (!(outcome.kind === "unknown" && outcome.code === "aborted")) this.#note(last, entry, outcome, nowMs);
      return { outcome, tries, ms: nowMs - startedMs, probe };
    } finally {
      topics.release(handle);
      if (alone) this.#probing.delete(entry.name);
    }
  }

  #note(last: Try, entry: TopicEntry, outcome: Outcome, nowMs: number): void {
    const { breakers, events } = this.#deps;
    const topic = { name: entry.name, entry, breaker: breakers.of(entry.name) };
    noteOutcome(last, topic, outcome, nowMs, { breakers, events });
  }

  async #tries(sink: Sink, message: Sent, timeoutMs: number, signal?: AbortSignal) {
    const { clock, random } = this.#deps;
    let last = new Try(message, timeoutMs);
    let outcome = await this.#once(last, sink, signal);
    let tries = 1;
    const untilMs = clock.monotonicMs() + EXTRA_MS;
    while (tries < TRIES_MAX && isAmbiguous(outcome) && !signal?.aborted) {
      await sleep(clock, PAUSE_MS * (0.5 + random.next() / 2), signal);
      const leftMs = untilMs - clock.monotonicMs() - GRACE_MS;
      if (leftMs < PAUSE_MS || signal?.aborted) break;
      // Half of what is left, so that a third try has its turn too.
      last = new Try(message, tries + 1 < TRIES_MAX ? leftMs / 2 : leftMs);
      const again = await this.#once(last, sink, signal);
      tries++;
      // A short try that only ran out of time knows less than what came before it.
      if (!(again.kind === "unknown" && again.code === "timeout")) outcome = again;
    }
    return { last, outcome, tries };
  }

  /** One try with a deadline of its own: nobody sweeps over it. */
  #once(one: Try, sink: Sink, signal?: AbortSignal): Promise<Outcome> {
    const { clock, events } = this.#deps;
    const startedMs = clock.monotonicMs();
    return new Promise((resolve) => {
      const cut = (why: "deadline" | "caller"): void => {
        if (one.cut !== null) return;
        one.abort(why, clock.monotonicMs());
        timer = clock.after(GRACE_MS, () => finish(cutShort(one)));
      };
      const aborted = (): void => cut("caller");
      let timer = clock.after(one.timeoutMs, () => cut("deadline"));
      const finish = (outcome: Outcome): void => {
        timer.cancel();
        if (!one.over) one.span?.end(outcome, clock.monotonicMs() - startedMs);
        one.over = true;
        signal?.removeEventListener("abort", aborted);
        resolve(outcome);
      };
      signal?.addEventListener("abort", aborted, { once: true });
      void Promise.resolve(runTry(one, sink, events.spans)).then(finish);
      if (signal?.aborted) aborted();
    });
  }
}

/** The connection broke under the request: it may have arrived or not. A status, a refusal or a full deadline is an answer. */
function isAmbiguous(outcome: Outcome): boolean {
  if (outcome.kind !== "unknown" && outcome.kind !== "retry") return false;
  return outcome.code === "connection_reset" || outcome.code === "connection_failed";
}
