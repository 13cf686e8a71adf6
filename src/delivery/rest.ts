/**
 * How long this process leaves a topic to others after it found that it cannot deliver it: 1 s, growing to 30 s while nothing
 * of it can be delivered from here, tried again with one message. Whatever reaches the receiver ends it.
 */

const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;
/** Even where some get through (a few descriptors are free), those that do not must not go round without a pause. */
const SHORTEST_MS = 100;

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

  /** Null: it can, as far as is known. */
  get why(): Why | null {
    return this.#why;
  }

  get untilMs(): number {
    return this.#untilMs;
  }

  /** How long it rests now; null: it was resting already. */
  begin(why: Why, nowMs: number): number | null {
    this.#why = why;
    if (nowMs < this.#untilMs) return null;
    const forMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(this.#times, 10));
    this.#times++;
    this.#sinceMs = nowMs;
    this.#untilMs = nowMs + forMs;
    return forMs;
  }

  /** Something of it reached its receiver, whatever that answered. */
  end(): void {
    if (this.#why === null) return;
    this.#why = null;
    this.#times = 0;
    this.#untilMs = Math.min(this.#untilMs, this.#sinceMs + SHORTEST_MS);
  }
}
