/**
 * The leases this worker holds, each over one claimed batch: until when it may trust them, which are due for extension, and
 * which turned out to be lost. Times are counted from before each call to the store, so our view may end early, never late.
 */
import { errorText } from "../message/errors.ts";
import type { Claim } from "../message/message.ts";
import { leaseHeadroomMs } from "../message/validate-topic.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { WorkStore } from "../store/store.ts";

export interface LeaseState {
  readonly claim: Claim;
  readonly leaseMs: number;
  readonly receivedMs: number;
  size: number;
  /** Messages without an outcome. */
  unfinished: number;
  /** Messages whose settlement is not written. */
  unsettled: number;
  untilMs: number;
  extendAtMs: number;
  lost: boolean;
  suspicion: number;
}

export interface LeaseTableOptions {
  readonly store: WorkStore;
  readonly clock: Clock;
  readonly events: Events;
}

export class LeaseTable {
  readonly #options: LeaseTableOptions;
  readonly #leases = new Map<string, LeaseState>();
  #extending: boolean = false;

  constructor(options: LeaseTableOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#leases.size;
  }

  /** The lease of a message that has just been claimed, with one more message in it. */
  take(claim: Claim, leaseMs: number, askedMs: number, nowMs: number, suspicion: number): LeaseState {
    let lease = this.#leases.get(claim.lease);
    if (!lease) {
      lease = {
        claim,
        leaseMs,
        receivedMs: nowMs,
        size: 0,
        unfinished: 0,
        unsettled: 0,
        untilMs: askedMs + leaseMs,
        extendAtMs: askedMs + leaseMs / 3,
        lost: false,
        suspicion,
      };
      this.#leases.set(claim.lease, lease);
    }
    lease.size++;
    lease.unfinished++;
    lease.unsettled++;
    return lease;
  }

  /** How many leases over suspects of this degree are not settled: an outcome that is not written would be lost with the next. */
  suspects(suspicion: number): number {
    let count = 0;
    for (const lease of this.#leases.values()) if (lease.suspicion === suspicion) count++;
    return count;
  }

  settled(lease: LeaseState): void {
    lease.unsettled--;
    if (lease.unsettled === 0) this.#leases.delete(lease.claim.lease);
  }

  /** Whether there is still time to begin something under it. */
  static lasts(lease: LeaseState, nowMs: number): boolean {
    return !lease.lost && nowMs < lease.untilMs - leaseHeadroomMs(lease.leaseMs);
  }

  /**
   * Extends what has used a third of its time, and returns what the store says is not ours any more. One call at a time; a failed one
   * is tried again at the next sweep.
   */
  async extendDue(nowMs: number): Promise<LeaseState[]> {
    const lost: LeaseState[] = [];
    if (this.#extending) return lost;
    const due = [...this.#leases.values()].filter((lease) => !lease.lost && nowMs >= lease.extendAtMs);
    if (due.length === 0) return lost;
    this.#extending = true;
    try {
      for (const leaseMs of new Set(due.map((lease) => lease.leaseMs))) {
        const same = due.filter((lease) => lease.leaseMs === leaseMs);
        lost.push(...(await this.#extend(same, leaseMs)));
      }
    } catch (error) {
      this.#options.events.emit({ type: "store_error", during: "extend", error: errorText(error), consecutive: 1 });
    } finally {
      this.#extending = false;
    }
    return lost;
  }

  async #extend(leases: readonly LeaseState[], leaseMs: number): Promise<LeaseState[]> {
    const askedMs = this.#options.clock.monotonicMs();
    // Should this call fail, the next one comes soon, but not at once.
    for (const lease of leases) lease.extendAtMs = askedMs + Math.min(1_000, leaseMs / 10);
    const results = await this.#options.store.extend(
      leases.map(({ claim }) => claim),
      leaseMs,
    );
    for (const [i, lease] of leases.entries()) {
      if (results[i] === "extended") {
        lease.untilMs = askedMs + leaseMs;
        lease.extendAtMs = askedMs + leaseMs / 3;
      } else if (lease.unsettled > 0 && lease.unfinished > 0) {
        // With every outcome known, "lost" may only mean that the last settle was faster than this call.
        lease.lost = true;
      }
    }
    return leases.filter(({ lost }) => lost);
  }
}
