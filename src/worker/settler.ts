/**
 * Writes outcomes in batches: whole leases together, at once when nothing else runs, and after a few milliseconds
 * otherwise. A store that fails is tried again for as long as the lease lives; a message that makes a whole batch fail
 * is singled out. `lost` changes nothing but an event (I4).
 */
import { errorText, isMakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import type { Settle } from "../message/settlement.ts";
import type { Events } from "../observe/events.ts";
import { backoffMs, jittered } from "../platform/backoff.ts";
import { type Clock, sleep, type Timer } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import { sharedAbort } from "../platform/shared-abort.ts";
import { UnderWay } from "../platform/under-way.ts";
import type { SettleResult, WorkStore } from "../store/store.ts";
import type { Attempt } from "./attempt.ts";
import type { LeaseState } from "./leases.ts";

export interface SettlerOptions {
  readonly store: WorkStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  /** Claimed of each settlement that was written or is lost for good. */
  readonly settled: (attempt: Attempt, result: SettleResult) => void;
  /** After each write: there is room again. */
  readonly nudge: () => void;
}

/** So many are worth a call of their own. */
const BATCH_GOOD = 250;
const BATCH_MAX = LIMITS.batchMessagesMax;
const WAIT_MS = 5;
/** How long outcomes of a lease wait for the rest of it: a store writes a whole lease cheaper than its parts. */
const PART_WAIT_MS = 40;
/** Until then the next one of its ordering key waits, too. */
const ORDERED_WAIT_MS = 20;
const WRITES_MAX = 2;
const REWRITE = { firstMs: 100, maxMs: 5_000 };

/** Outcomes of one lease that is still at work. */
interface Part {
  /** It goes then, whether or not the rest has come. */
  readonly dueMs: number;
  readonly attempts: Attempt[];
}

export class Settler {
  readonly #options: SettlerOptions;
  readonly #writes = new UnderWay();
  readonly #giveUp = sharedAbort();
  readonly #parts = new Map<LeaseState, Part>();
  /** Leases with a write under way: parts of one go one after the other, so that the store can tell which is the last. */
  readonly #writing = new Set<LeaseState>();
  /** Outcomes that may go, lease by lease. */
  #whole: Attempt[][] = [];
  #wholeCount = 0;
  #partCount = 0;
  #inWrites = 0;
  #timer: Timer | undefined;
  #failures = 0;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  /** Outcomes that are not written yet. */
  get backlog(): number {
    return this.#wholeCount + this.#partCount + this.#inWrites;
  }

  /** Failed writes in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** `nowMs`: when the outcome was known. Its lease counts it as finished already. */
  add(attempt: Attempt, settle: Settle, nowMs: number): void {
    const { lease } = attempt;
    attempt.settle = settle;
    let part = this.#parts.get(lease);
    if (!part) {
      const waitMs = attempt.message.orderingKey === null ? PART_WAIT_MS : ORDERED_WAIT_MS;
      part = { dueMs: nowMs + waitMs, attempts: [] };
      this.#parts.set(lease, part);
    }
    part.attempts.push(attempt);
    this.#partCount++;
    if (lease.unfinished === 0) this.#complete(lease, part);
  }

  /** After a burst of outcomes. `last`: nothing runs any more that could join them. */
  consider(last: boolean): void {
    if (this.backlog === this.#inWrites) return;
    if (last) this.#flush(Number.POSITIVE_INFINITY);
    else if (this.#wholeCount >= BATCH_GOOD) this.#flush(Number.NEGATIVE_INFINITY);
    this.#wait();
  }

  /** Writes everything and waits for it, but not longer than `ms`: what is left comes back when its lease ends. */
  async close(ms: number): Promise<void> {
    const deadline = this.#options.clock.after(ms, () => this.#giveUp.abort());
    while (this.backlog > 0 && !this.#giveUp.signal.aborted) {
      this.#flush(Number.POSITIVE_INFINITY);
      await Promise.race([this.#writes.finished(), sleep(this.#options.clock, ms, this.#giveUp.signal)]);
    }
    deadline.cancel();
    this.#giveUp.abort();
    this.#timer?.cancel();
  }

  #complete(lease: LeaseState, part: Part): void {
    this.#parts.delete(lease);
    this.#whole.push(part.attempts);
    this.#partCount -= part.attempts.length;
    this.#wholeCount += part.attempts.length;
  }

  #wait(): void {
    if (this.#timer || this.backlog === this.#inWrites) return;
    this.#timer = this.#options.clock.after(WAIT_MS, () => {
      this.#timer = undefined;
      this.#flush(this.#options.clock.monotonicMs());
      this.#wait();
    });
  }

  /** Sends what is complete, and parts of leases that wait no longer than until then. */
  #flush(untilMs: number): void {
    for (const [lease, part] of this.#parts) if (part.dueMs <= untilMs) this.#complete(lease, part);
    while (this.#writes.size < WRITES_MAX && this.#whole.length > 0) {
      const batch = this.#takeBatch();
      if (batch.length === 0) return;
      this.#send(batch);
    }
  }

  /** As many leases as fit into one call; one that does not fit goes alone and is cut by nobody. */
  #takeBatch(): Attempt[] {
    const batch: Attempt[] = [];
    const left: Attempt[][] = [];
    for (const attempts of this.#whole) {
      const { lease } = attempts[0] as Attempt;
      const fits = batch.length === 0 || batch.length + attempts.length <= BATCH_MAX;
      if (!fits || this.#writing.has(lease)) {
        left.push(attempts);
        continue;
      }
      this.#writing.add(lease);
      for (const attempt of attempts) batch.push(attempt);
    }
    this.#whole = left;
    return batch;
  }

  #send(batch: Attempt[]): void {
    this.#wholeCount -= batch.length;
    this.#inWrites += batch.length;
    const write = this.#write(batch);
    this.#writes.add(write);
    void write.finally(() => {
      for (const { lease } of batch) this.#writing.delete(lease);
      this.#inWrites -= batch.length;
      // What gathered meanwhile has waited long enough.
      this.#flush(Number.NEGATIVE_INFINITY);
      this.#options.nudge();
    });
  }

  async #write(batch: readonly Attempt[]): Promise<void> {
    const settles = batch.map(({ settle }) => settle as Settle);
    const { clock, random, events, store } = this.#options;
    for (let failed = 1; ; failed++) {
      const startedMs = clock.monotonicMs();
      try {
        const results = await store.settle(settles);
        events.spans?.settled(batch, clock.monotonicMs() - startedMs);
        this.#failures = 0;
        this.#report(batch, results);
        return;
      } catch (error) {
        this.#failures++;
        events.spans?.settled(batch, clock.monotonicMs() - startedMs, error);
        events.emit({
          type: "store_error",
          during: "settle",
          error: errorText(error),
          consecutive: this.#failures,
        });
        if (!mayTryAgain(error) && (await this.#split(batch))) return;
        if (this.#hopeless(batch, error)) {
          this.#report(batch, []);
          return;
        }
        await sleep(clock, jittered(backoffMs(REWRITE, failed), random), this.#giveUp.signal);
      }
    }
  }

  /** One message that cannot be written must not keep its batch from being written. */
  async #split(batch: readonly Attempt[]): Promise<boolean> {
    if (batch.length < 2) return false;
    const half = batch.length >> 1;
    await this.#write(batch.slice(0, half));
    await this.#write(batch.slice(half));
    return true;
  }

  /** With every lease run out other workers own the messages, and writing again could only return `lost`. */
  #hopeless(batch: readonly Attempt[], error: unknown): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    return !mayTryAgain(error) || this.#giveUp.signal.aborted || batch.every(({ lease }) => nowMs > lease.untilMs);
  }

  #report(batch: readonly Attempt[], results: readonly SettleResult[]): void {
    const { settled } = this.#options;
    for (let i = 0; i < batch.length; i++) {
      settled(batch[i] as Attempt, results[i] ?? "lost");
    }
  }
}

/** An error of another kind than ours is taken for the message's fault, unless it is alone. */
function mayTryAgain(error: unknown): boolean {
  return isMakegoodError(error) && error.retryable;
}
