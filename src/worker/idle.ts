/**
 * Tells the store whether this worker wants hints from other processes: yes before it rests, no while there is a backlog,
 * because then the next claim follows anyway and hints would only cost their senders.
 */
import type { WorkStore } from "../store/store.ts";
import type { StoreHealth } from "./store-health.ts";

/** Said again now and then: a store forgets who waits, so that nobody sends hints to the dead. */
const AGAIN_MS = 10_000;
const FULL_CLAIMS = 2;

export interface IdleOptions {
  readonly store: WorkStore;
  readonly owner: string;
  readonly health: StoreHealth;
  readonly track: (call: Promise<unknown>) => void;
  /** The store has just been told that we wait: what came between the last look and the telling is found by one more look. */
  readonly told: () => void;
}

export class Idle {
  readonly #options: IdleOptions;
  #waiting: boolean = false;
  #toldMs = 0;
  #fullInARow = 0;

  constructor(options: IdleOptions) {
    this.#options = options;
  }

  /** Whether others send us hints, as far as we know. */
  get waiting(): boolean {
    return this.#waiting;
  }

  /** There is nothing to claim. */
  rest(nowMs: number): void {
    if (this.#waiting && nowMs - this.#toldMs < AGAIN_MS) return;
    const first = !this.#waiting;
    this.#toldMs = nowMs;
    this.#tell(true, first);
  }

  /** What a claim brought: all it asked for, several times in a row, is a backlog. */
  claimed(full: boolean): void {
    this.#fullInARow = full ? this.#fullInARow + 1 : 0;
    if (this.#fullInARow >= FULL_CLAIMS && this.#waiting) this.#tell(false, false);
  }

  async stop(): Promise<void> {
    if (this.#waiting) await this.#options.store.idle(this.#options.owner, false).catch(() => undefined);
  }

  #tell(waiting: boolean, look: boolean): void {
    const { store, owner, health, track, told } = this.#options;
    this.#waiting = waiting;
    track(
      store.idle(owner, waiting).then(
        () => {
          if (look) told();
        },
        (error) => {
          this.#waiting = !waiting;
          health.failed("idle", error);
        },
      ),
    );
  }
}
