/**
 * Calls that nobody waits for one by one, so that a close can wait for all of them.
 */
export class UnderWay {
  readonly #calls = new Set<Promise<unknown>>();

  get size(): number {
    return this.#calls.size;
  }

  /** Forgotten when it is over, whether it succeeded or failed. */
  add(call: Promise<unknown>): void {
    this.#calls.add(call);
    const over = (): void => void this.#calls.delete(call);
    call.then(over, over);
  }

  /** Resolves when those that are under way now are over; it never rejects. */
  async finished(): Promise<void> {
    await Promise.allSettled([...this.#calls]);
  }

  /** The same, with those that begin meanwhile. */
  async over(): Promise<void> {
    while (this.#calls.size > 0) await this.finished();
  }
}
