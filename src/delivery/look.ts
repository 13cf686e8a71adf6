/**
 * When to ask the store which lanes have work: each poll, soon after a hint that names no lane we know, and some time
 * after a lane ran dry, because only the store knows what is due next. One question at a time, and none often enough to
 * weigh anything.
 */
import type { Clock } from "../platform/clock.ts";
import type { WorkStore } from "../store/store.ts";
import type { LaneTable } from "./lanes.ts";
import type { StoreHealth } from "./store-health.ts";

const SOON_MS = 20;
const AGAIN_MS = 100;

export interface LookOptions {
  readonly store: WorkStore;
  readonly clock: Clock;
  readonly lanes: LaneTable;
  readonly health: StoreHealth;
  readonly pollMs: number;
  readonly looked: () => void;
}

export class Look {
  readonly #options: LookOptions;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #wanted: "soon" | "again" | "poll" = "soon";
  #costMs = 0;
  #underWay: boolean = false;

  constructor(options: LookOptions) {
    this.#options = options;
  }

  /** False until the first answer: before it, nobody knows whether there is nothing to do. */
  get begun(): boolean {
    return this.#lookedMs > Number.NEGATIVE_INFINITY;
  }

  /** A hint named something we do not know. */
  soon(): void {
    this.#wanted = "soon";
  }

  /** What is due next is not known any more. */
  again(): void {
    if (this.#wanted === "poll") this.#wanted = "again";
  }

  /** Monotonic moment of the next look. `unheard`: nobody sends us hints now, so looking is how new lanes are found. */
  dueMs(unheard: boolean): number {
    if (this.#underWay) return Number.POSITIVE_INFINITY;
    if (this.#wanted === "soon") return this.#lookedMs + Math.max(SOON_MS, 3 * this.#costMs);
    // A look over very many lanes has its price: the dearer, the rarer.
    const againMs = Math.max(AGAIN_MS, 10 * this.#costMs);
    return (
      this.#lookedMs + (unheard || this.#wanted === "again" ? Math.min(againMs, this.#options.pollMs) : this.#options.pollMs)
    );
  }

  async look(): Promise<void> {
    const { store, clock, lanes, health, looked } = this.#options;
    const askedMs = clock.monotonicMs();
    const mark = lanes.mark;
    this.#underWay = true;
    this.#wanted = "poll";
    try {
      lanes.seen(await store.lanes(), clock.monotonicMs(), mark);
      health.ok();
      this.#costMs += (Math.min(100, clock.monotonicMs() - askedMs) - this.#costMs) / 4;
    } catch (error) {
      this.#wanted = "again";
      health.failed("lanes", error);
    } finally {
      this.#lookedMs = askedMs;
      this.#underWay = false;
    }
    looked();
  }
}
