/**
 * The circuit breaker of one topic in one worker. Five different messages failing in a row open it; open, it holds messages
 * without spending attempts; when its cool-down is over one worker of all gets the probe and tries one message. The state
 * itself is the store's, shared by all workers; here is only what this worker saw and what it may do.
 */
import { errorText, isMakegoodError } from "../message/errors.ts";
import { DEFAULTS } from "../message/limits.ts";
import type { BreakerState } from "../message/topic.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { TopicStore } from "../store/topics.ts";
import type { TopicEntry } from "./topic-table.ts";

export interface BreakerDeps {
  readonly topics: TopicStore;
  readonly owner: string;
  readonly clock: Clock;
  readonly events: Events;
  readonly entry: (name: string) => TopicEntry | undefined;
  /** Something changed that the next plan should see. */
  readonly changed: () => void;
  /** Keeps a call that nobody waits for from being lost at a stop. */
  readonly track: (call: Promise<unknown>) => void;
}

const COOLDOWN_BASE_MS = 1_000;
const PROBE_MARGIN_MS = 2_000;

export function cooldownMs(trips: number): number {
  return Math.min(DEFAULTS.breakerCooldownMs, COOLDOWN_BASE_MS * 2 ** Math.min(trips, 30));
}

export class Breaker {
  readonly #name: string;
  readonly #deps: BreakerDeps;
  /** Failed messages since the last success → when. */
  readonly #failed = new Map<string, number>();
  /** This worker has the probe, until then and since then. */
  #probeUntilMs = Number.NEGATIVE_INFINITY;
  #probeSinceMs = Number.POSITIVE_INFINITY;
  #askedMs = Number.NEGATIVE_INFINITY;
  #tripping: boolean = false;
  #resetting: boolean = false;

  constructor(name: string, deps: BreakerDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  /** `one`: only the probe. */
  admits(nowMs: number): "all" | "one" | "none" {
    if (this.#tripping) return "none";
    const entry = this.#deps.entry(this.#name);
    if (!entry || entry.record.breaker.state === "closed" || this.#resetting) return "all";
    return nowMs < this.#probeUntilMs ? "one" : "none";
  }

  /** Proof that the receiver lives: delivered, or an answer about the message itself. */
  proved(): void {
    if (this.#failed.size > 0) this.#failed.clear();
    const entry = this.#deps.entry(this.#name);
    if (!entry || entry.record.breaker.state === "closed" || this.#resetting || this.#tripping) return;
    this.#resetting = true;
    this.#endProbe();
    this.#call("breaker_reset", async () => {
      const closed = { state: "closed", probeInMs: 0, trips: 0, reason: null, tenants: [] } as const;
      try {
        await this.#orAlone(this.#deps.topics.reset(this.#name), () => this.#learn(entry, closed));
        this.#learn(entry, closed);
      } finally {
        this.#resetting = false;
      }
    });
  }

  /** `startedMs`: when the attempt began; one from before the probe says nothing about the probe. */
  failed(id: string, startedMs: number, nowMs: number, reason: string): void {
    const entry = this.#deps.entry(this.#name);
    if (!entry || this.#tripping) return;
    if (entry.record.breaker.state !== "closed") {
      if (nowMs < this.#probeUntilMs && startedMs >= this.#probeSinceMs) this.#trip(entry, reason);
      return;
    }
    this.#failed.delete(id);
    this.#failed.set(id, nowMs);
    for (const [old, atMs] of this.#failed) {
      if (nowMs - atMs <= DEFAULTS.breakerWindowMs) break;
      this.#failed.delete(old);
    }
    if (this.#failed.size >= DEFAULTS.breakerFailures) this.#trip(entry, reason);
  }

  /** Asks for the probe when the cool-down is over. Returns how long until it may be asked for; Infinity: not open. */
  seekProbe(nowMs: number): number {
    const entry = this.#deps.entry(this.#name);
    if (!entry || entry.record.breaker.state === "closed" || this.#tripping) return Number.POSITIVE_INFINITY;
    if (nowMs < this.#probeUntilMs) return Number.POSITIVE_INFINITY;
    const inMs = Math.max(entry.seenMs + entry.record.breaker.probeInMs - nowMs, this.#askedMs + 500 - nowMs);
    if (inMs > 0) return inMs;
    this.#askedMs = nowMs;
    this.#call("breaker_probe", async () => {
      const leaseMs = entry.timeoutMs + PROBE_MARGIN_MS;
      const granted = (sinceMs: number): void => {
        this.#probeSinceMs = sinceMs;
        this.#probeUntilMs = sinceMs + leaseMs;
        this.#learn(entry, { ...entry.record.breaker, state: "half_open", probeInMs: leaseMs });
      };
      const asking = this.#deps.topics.probe(this.#name, this.#deps.owner, leaseMs);
      if (await this.#orAlone(asking, () => granted(this.#deps.clock.monotonicMs()))) granted(nowMs);
    });
    return Number.POSITIVE_INFINITY;
  }

  #trip(entry: TopicEntry, reason: string): void {
    this.#tripping = true;
    this.#failed.clear();
    this.#endProbe();
    const forMs = cooldownMs(entry.record.breaker.trips);
    this.#call("breaker_trip", async () => {
      const { trips } = entry.record.breaker;
      const opened = { state: "open", probeInMs: forMs, trips: trips + 1, reason, tenants: [] } as const;
      try {
        const tripping = this.#deps.topics.trip(this.#name, forMs, reason);
        this.#learn(entry, await this.#orAlone(tripping, () => this.#learn(entry, opened)));
      } finally {
        this.#tripping = false;
      }
    });
  }

  /** While the store that all workers share cannot be asked, what this process saw holds for this process; the next refresh brings the store's word. */
  async #orAlone<T>(asked: Promise<T>, alone: () => void): Promise<T> {
    return asked.catch((error) => {
      if (isMakegoodError(error) && error.retryable) alone();
      throw error;
    });
  }

  #endProbe(): void {
    this.#probeUntilMs = Number.NEGATIVE_INFINITY;
    this.#probeSinceMs = Number.POSITIVE_INFINITY;
  }

  /** The store's answer, at once: the next refresh would bring the same. */
  #learn(entry: TopicEntry, breaker: BreakerState): void {
    entry.record = { ...entry.record, breaker };
    entry.seenMs = this.#deps.clock.monotonicMs();
    this.#deps.events.emit({ type: "breaker", topic: this.#name, state: breaker.state, reason: breaker.reason });
  }

  #call(during: string, call: () => Promise<void>): void {
    const done = call()
      .catch((error) => {
        this.#deps.events.emit({ type: "store_error", during, error: errorText(error), consecutive: 1 });
      })
      .finally(this.#deps.changed);
    this.#deps.track(done);
  }
}
