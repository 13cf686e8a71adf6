/**
 * Opens a Makegood when it is first needed, and again later when that failed: a producer starts and goes on although its own store
 * is down (DA-17). Nobody waits for it longer than they asked to.
 */
import type { Makegood } from "../../create.ts";
import { type Clock, sleep } from "../../platform/clock.ts";

export interface Opening {
  /** Null: not open within `waitMs`. */
  get(waitMs: number): Promise<Makegood | null>;
  /** What is open; null: nothing is. */
  readonly opened: Makegood | null;
  /** No more tries; waits for the one under way. */
  stop(): Promise<void>;
}

export interface OpeningOptions {
  readonly open: () => Promise<Makegood>;
  readonly clock: Clock;
  /** Told of each failure. */
  readonly failed: (error: unknown, consecutive: number) => void;
  /** Told once it is open. */
  readonly ready: (mg: Makegood) => void;
}

const AGAIN_MS = 5_000;

export function createOpening({ open, clock, failed, ready }: OpeningOptions): Opening {
  let opened: Makegood | null = null;
  let trying: Promise<void> | null = null;
  let failures = 0;
  let nextMs = Number.NEGATIVE_INFINITY;
  let stopped = false;
  let again: { cancel(): void } | undefined;

  async function once(): Promise<void> {
    try {
      opened = await open();
      ready(opened);
    } catch (error) {
      failed(error, ++failures);
      nextMs = clock.monotonicMs() + AGAIN_MS;
      // Whoever waits for its turn must not need another write to get it.
      if (!stopped) again = clock.after(AGAIN_MS, start, true);
    } finally {
      trying = null;
    }
  }

  function start(): void {
    if (opened !== null || trying !== null || stopped || clock.monotonicMs() < nextMs) return;
    again?.cancel();
    trying = once();
  }

  return {
    get opened() {
      return opened;
    },
    async get(waitMs) {
      if (opened !== null) return opened;
      start();
      if (trying !== null) {
        const given = new AbortController();
        await Promise.race([trying, sleep(clock, waitMs, given.signal)]);
        given.abort();
      }
      return opened;
    },
    async stop() {
      stopped = true;
      again?.cancel();
      await trying;
    },
  };
}
