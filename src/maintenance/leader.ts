/**
 * A leadership lease, renewed at a third of its time and given up when stopped. It decides who does a chore that one process may as well
 * do for all, and gives that one a fence: what it writes is refused by the store once the lease has run out or another one leads (I9).
 */
import { errorText } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import { backoffMs } from "../platform/backoff.ts";
import type { Clock } from "../platform/clock.ts";
import type { Fence } from "../platform/job.ts";
import { startLoop } from "../platform/loop.ts";
import type { Store } from "../store/store.ts";

export interface Leader {
  readonly held: boolean;
  /** Null while it is not held. */
  fence(): Fence | null;
  stop(): Promise<void>;
}

export interface LeaderOptions {
  readonly store: Store;
  readonly name: string;
  readonly owner: string;
  readonly clock: Clock;
  readonly events: Events;
  readonly ttlMs?: number | undefined;
  /** Called when it begins to lead. */
  readonly led?: (() => void) | undefined;
}

const AGAIN = { firstMs: 1_000, maxMs: 5_000 };
const LEASE_MS = 30_000;

export function startLeader({ store, name, owner, clock, events, ttlMs = LEASE_MS, led }: LeaderOptions): Leader {
  let until = Number.NEGATIVE_INFINITY;
  let term = "";
  const loop = startLoop({
    clock,
    step: async () => {
      const askedMs = clock.monotonicMs();
      const leadership = await store.lead(name, owner, ttlMs);
      // Counted from before the question: our view may end early, never late.
      until = leadership.held ? askedMs + ttlMs : Number.NEGATIVE_INFINITY;
      if (leadership.held && leadership.term !== term) {
        term = leadership.term;
        events.emit({ type: "lifecycle", what: "leader", detail: { name, owner, term } });
        led?.();
      }
      return ttlMs / 3;
    },
    failed: (error, consecutive) => {
      events.emit({ type: "store_error", during: "lead", error: errorText(error), consecutive });
      return backoffMs(AGAIN, consecutive);
    },
  });
  const held = (): boolean => clock.monotonicMs() < until;
  return {
    get held() {
      return held();
    },
    fence: () => (held() ? { name, owner, term } : null),
    async stop() {
      const mine = held();
      await loop.stop();
      // The lease runs out by itself; giving it up only lets the next one begin sooner.
      if (mine) await store.lead(name, owner, 0).catch(() => undefined);
    },
  };
}
