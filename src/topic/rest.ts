/**
 * How long this process leaves a topic to others after it found that it cannot deliver it: 1 s, growing to 30 s while nothing
 * of it can be delivered from here, tried again with one message. Whatever reaches the receiver ends it; from then on as many run
 * at once as go well, which is what a process with few descriptors left needs.
 */
import { backoffMs } from "../platform/backoff.ts";

const REST = { firstMs: 1_000, maxMs: 30_000 };
/** Even where some get through, those that do not must not go round without a pause. */
const SHORTEST_MS = 100;
const ROOM_MIN = 2;
/** By how much each that goes well makes room for more; around where it last failed, by less. Half of it goes with each rest. */
const ROOM_GROWS = 0.25;
const ROOM_GROWS_NEAR = 0.05;
const ROOM_ALL = 1_000;

/** Why this process cannot deliver a topic. */
export interface Why {
  readonly code: string;
  readonly error: string;
}

export class Rest {
  #untilMs = Number.NEGATIVE_INFINITY;
  #sinceMs = Number.NEGATIVE_INFINITY;
  #times = 0;
  #why: Why | null = null;
  #room = Number.POSITIVE_INFINITY;
  #failedAt = 0;

  /** Null: it can, as far as is known. */
  get why(): Why | null {
    return this.#why;
  }

  get untilMs(): number {
    return this.#untilMs;
  }

  /** How many attempts of the topic may run at once. */
  get room(): number {
    return Math.floor(this.#room);
  }

  /** `running`: how many others of it were under way. How long it rests now; null: it was resting already. */
  begin(why: Why, running: number, nowMs: number): number | null {
    this.#why = why;
    if (nowMs < this.#untilMs) return null;
    const forMs = backoffMs(REST, ++this.#times);
    this.#sinceMs = nowMs;
    this.#untilMs = nowMs + forMs;
    this.#failedAt = Math.min(this.#room, running);
    this.#room = Math.max(ROOM_MIN, this.#failedAt / 2);
    return forMs;
  }

  /** Something of it reached its receiver, whatever that answered. */
  end(): void {
    if (this.#room === Number.POSITIVE_INFINITY) return;
    const near = this.#room > 0.8 * this.#failedAt && this.#room < 1.5 * this.#failedAt;
    this.#room += near ? ROOM_GROWS_NEAR : ROOM_GROWS;
    if (this.#room > ROOM_ALL) this.#room = Number.POSITIVE_INFINITY;
    if (this.#why === null) return;
    this.#why = null;
    this.#times = 0;
    this.#untilMs = Math.min(this.#untilMs, this.#sinceMs + SHORTEST_MS);
  }
}
