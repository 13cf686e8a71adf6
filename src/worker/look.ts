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
/** With more lanes than this they come in parts, one after the other: neither the store nor this process has to carry them all at once. */
const PART = 1_000;
const PART_MIN = 100;

export interface LookOptions {
  readonly store: WorkStore;
  readonly clock: Clock;
  readonly lanes: LaneTable;
  readonly health: StoreHealth;
  readonly pollMs: number;
}

export class Look {
  readonly #options: LookOptions;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #wanted: "soon" | "again" | "poll" = "soon";
  #costMs = 0;
  #after: string | undefined;
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
    // A look over very many lanes is expensive: it is made less often as it costs more.
    const againMs = Math.max(AGAIN_MS, 10 * this.#costMs);
    return (
      this.#lookedMs + (unheard || this.#wanted === "again" ? Math.min(againMs, this.#options.pollMs) : this.#options.pollMs)
    );
  }

  async look(): Promise<void> {
    const { store, clock, lanes, health } = this.#options;
    const askedMs = clock.monotonicMs();
    const mark = lanes.mark;
    this.#underWay = true;
    this.#wanted = "poll";
    const after = this.#after;
    // No more than can be taken in: a lane that was read and then dropped would be passed over.
    const limit = Math.max(PART_MIN, Math.min(PART, lanes.room(askedMs)));
    try {
      const found = await store.lanes({ after, limit });
      this.#after = found.length < limit ? undefined : found.at(-1)?.lane;
      const part = { first: after === undefined, last: this.#after === undefined };
      lanes.seen(found, clock.monotonicMs(), mark, part);
      if (!part.last) this.again();
      health.ok();
      this.#costMs += (Math.min(100, clock.monotonicMs() - askedMs) - this.#costMs) / 4;
    } catch (error) {
      this.#wanted = "again";
      health.failed("lanes", error);
    } finally {
      this.#lookedMs = askedMs;
      this.#underWay = false;
    }
  }
}
