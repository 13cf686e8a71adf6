/**
 * Where the probes of one breaker are taken from, one after the other. Those that wait longest may all be poison, and so may the newest, and both:
 * most probes look between them, by chance. Where one went through the next begin, also when the breaker closed and opens again.
 */
import type { Random } from "../../platform/random.ts";
import type { From } from "../../store/store.ts";

export interface Spot {
  /** Which of the lanes: the one that is likeliest to go through, the one that waited longest, or by a part of their number. */
  readonly lane: "likeliest" | "longest" | number;
  readonly from: From;
}

const NEWEST: Spot = { lane: "likeliest", from: "newest" };
const OLDEST: Spot = { lane: "longest", from: "oldest" };
/** `near`: where one went through last inside a lane; without that anywhere. */
const TURNS = ["near", "near", NEWEST, OLDEST, "anywhere", "anywhere", "anywhere"] as const;
const TURN_NEWEST = TURNS.indexOf(NEWEST);
/** How much of a lane is near. */
const NEAR = 0.15;

export class Spots {
  now: Spot = NEWEST;
  /** One went through from there. */
  #good = false;
  #near: number | undefined;
  #turn = TURN_NEWEST;

  /** The next one is to be tried. */
  move(random: Random): void {
    if (!this.#good) this.now = this.#next(random);
    this.#good = false;
  }

  /** One went through. */
  won(): void {
    const { from } = this.now;
    this.now = { lane: "likeliest", from };
    this.#good = true;
    this.#near = typeof from === "number" ? from : undefined;
    this.#turn = this.#near === undefined ? TURN_NEWEST : 0;
  }

  #next(random: Random): Spot {
    const turn = TURNS[this.#turn++ % TURNS.length] ?? NEWEST;
    if (typeof turn === "object") return turn;
    if (turn === "anywhere" || this.#near === undefined) return { lane: random.next(), from: random.next() };
    const from = this.#near + (random.next() - 0.5) * NEAR;
    return { lane: "likeliest", from: Math.max(0, Math.min(from, 1 - Number.EPSILON)) };
  }
}
