/**
 * How the store fares as one worker sees it: after a failure everything rests, longer each time and never in step with
 * other workers, so that a store that is down is neither hammered nor given up.
 */
import { errorText } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import { backoffMs, jittered } from "../platform/backoff.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";

const REST = { firstMs: 100, maxMs: 5_000 };

export class StoreHealth {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #events: Events;
  #failures = 0;
  #restUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, random: Random, events: Events) {
    this.#clock = clock;
    this.#random = random;
    this.#events = events;
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** Monotonic moment before which the store is left alone. */
  get restUntilMs(): number {
    return this.#restUntilMs;
  }

  ok(): void {
    this.#failures = 0;
  }

  failed(during: string, error: unknown): void {
    this.#failures++;
    this.#restUntilMs = this.#clock.monotonicMs() + jittered(backoffMs(REST, this.#failures), this.#random);
    this.#events.emit({ type: "store_error", during, error: errorText(error), consecutive: this.#failures });
  }
}
