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
}

export class Idle {
  readonly #options: IdleOptions;
  #waiting: boolean = false;
  #saidMs = 0;
  #fullInARow = 0;

  constructor(options: IdleOptions) {
    this.#options = options;
  }

  /** Whether others send us hints, as far as we know. */
  get waiting(): boolean {
    return this.#waiting;
  }

  /** There is nothing to claim. True: the store now knows that we wait, and what came just before it knew is found by one more look. */
  async rest(nowMs: number): Promise<boolean> {
    if (this.#waiting && nowMs - this.#saidMs < AGAIN_MS) return false;
    const first = !this.#waiting;
    this.#saidMs = nowMs;
    return (await this.#say(true)) && first;
  }

  /** What a claim brought: all it asked for, several times in a row, is a backlog. */
  async claimed(full: boolean): Promise<void> {
    this.#fullInARow = full ? this.#fullInARow + 1 : 0;
    if (this.#fullInARow >= FULL_CLAIMS && this.#waiting) await this.#say(false);
  }

  async stop(): Promise<void> {
    if (this.#waiting) await this.#options.store.idle(this.#options.owner, false).catch(() => undefined);
  }

  async #say(waiting: boolean): Promise<boolean> {
    const { store, owner, health } = this.#options;
    this.#waiting = waiting;
    try {
      await store.idle(owner, waiting);
      return true;
    } catch (error) {
      this.#waiting = !waiting;
      health.failed("idle", error);
      return false;
    }
  }
}
