/**
 * One process of the simulation as the code inside it sees the world: a clock that may be wrong, chance of its own, and an end that is
 * like kill -9. What is on its way to a dead process never arrives; to a frozen one it arrives late.
 */
import type { Clock, Timer } from "../../src/platform/clock.ts";
import { SeededRandom } from "./seeded-random.ts";
import type { World } from "./world.ts";

export interface Skew {
  /** By how much its wall clock is off. */
  readonly wallMs: number;
  /** How fast its monotonic clock runs; 1: as the world's. */
  readonly rate: number;
}

export class SimProcess {
  readonly name: string;
  readonly world: World;
  readonly clock: Clock;
  readonly random: SeededRandom;
  /** Chance on the way to and from the store and the receivers. */
  readonly net: SeededRandom;
  alive = true;
  /** What befalls it the next time such a call of its has brought or written something, before it hears of it. */
  ambush: { readonly verb: string; readonly run: () => void } | null = null;
  readonly #bornMs: number;
  readonly #endings: (() => void)[] = [];
  #frozenUntilMs = 0;
  #wallMs: number;

  constructor(world: World, name: string, seed: number, skew: Skew) {
    this.world = world;
    this.name = name;
    this.random = new SeededRandom(seed, name);
    this.net = new SeededRandom(seed, name, "net");
    this.#bornMs = world.nowMs;
    this.#wallMs = skew.wallMs;
    this.clock = {
      wallMs: () => world.nowMs + this.#wallMs,
      monotonicMs: () => 1_000_000 + (world.nowMs - this.#bornMs) * skew.rate,
      // As Node does it: no timer fires before the next millisecond.
      after: (ms, run) => this.later(Math.max(1, ms / skew.rate), run),
    };
  }

  /** Something that reaches this process after `ms`, if it lives then. */
  later(ms: number, run: () => void): Timer {
    let over = false;
    const arrive = (): void => {
      if (over || !this.alive) return;
      const { nowMs } = this.world;
      if (nowMs < this.#frozenUntilMs) timer = this.world.after(this.#frozenUntilMs - nowMs, arrive);
      else run();
    };
    let timer = this.world.after(ms, arrive);
    return {
      cancel: () => {
        over = true;
        timer.cancel();
      },
    };
  }

  /** Whether something that has no way to go reaches it now. */
  get awake(): boolean {
    return this.alive && this.world.nowMs >= this.#frozenUntilMs;
  }

  freeze(ms: number): void {
    this.#frozenUntilMs = Math.max(this.#frozenUntilMs, this.world.nowMs + ms);
  }

  thaw(): void {
    this.#frozenUntilMs = Math.min(this.#frozenUntilMs, this.world.nowMs);
  }

  jump(ms: number): void {
    this.#wallMs += ms;
  }

  whenDead(run: () => void): void {
    this.#endings.push(run);
  }

  die(): void {
    this.alive = false;
    for (const end of this.#endings.splice(0)) end();
  }
}
