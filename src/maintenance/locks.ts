/**
 * Named locks for a run by hand: non-blocking, taken over when they ran out, released only by their holder (REC-47, REC-48). They are
 * leaderships of their own name, so they save work, and what is written under one is refused once it has ended (I9).
 */
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Fence } from "../platform/job.ts";
import { homeOf } from "../store/home.ts";
import type { Store } from "../store/store.ts";

/** How long a lock is held that nobody extends: of a run that compares stores, and of a view that is made again. */
export const LOCK_MS = { reconcile: 600_000, view: 300_000 } as const;

export interface Lock {
  readonly fence: Fence;
  /** False: it ran out before, and may be another's. */
  extend(): Promise<boolean>;
  release(): Promise<void>;
}

export interface Locks {
  /** Null: another one holds it. The same holder may acquire it again. */
  acquire(name: string, ttlMs?: number): Promise<Lock | null>;
  /** Deletes those that ran out; returns how many. Redis keeps one small record for each name, and none is deleted there. */
  cleanup(): Promise<number>;
}

export function createLocks(store: Store, holder: string, { clock, events }: { clock: Clock; events: Events }): Locks {
  return {
    async acquire(name, ttlMs = LOCK_MS.reconcile) {
      const { held, term } = await store.lead(name, holder, ttlMs);
      events.emit({ type: "lock", name, what: held ? "acquired" : "failed", ms: null });
      if (!held) return null;
      const sinceMs = clock.monotonicMs();
      const say = (what: "extended" | "lost" | "released"): void => {
        events.emit({ type: "lock", name, what, ms: what === "extended" ? null : clock.monotonicMs() - sinceMs });
      };
      return {
        fence: { name, owner: holder, term },
        async extend() {
          const now = await store.lead(name, holder, ttlMs);
          const mine = now.held && now.term === term;
          say(mine ? "extended" : "lost");
          // Taken again under a new term, it is another lock than the one that was written under.
          if (now.held && !mine) await store.lead(name, holder, 0);
          return mine;
        },
        async release() {
          await store.lead(name, holder, 0);
          say("released");
        },
      };
    },
    async cleanup() {
      const home = homeOf(store);
      if (home === null) return 0;
      const [row] = await home.write("clean up locks")(`select ${home.s}.cleanup_expired_locks()::text`);
      return Number(row?.[0]);
    },
  };
}
