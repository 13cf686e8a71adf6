/**
 * A leadership lease, renewed at a third of its time and given up when stopped. It only decides who does a chore that one
 * process may as well do for all; a leader that stalled past its lease does no harm (I9).
 */
import { errorText } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import { backoffMs } from "../platform/backoff.ts";
import type { Clock } from "../platform/clock.ts";
import { startLoop } from "../platform/loop.ts";
import type { Store } from "../store/store.ts";

export interface Leader {
  readonly held: boolean;
  stop(): Promise<void>;
}

export interface LeaderOptions {
  readonly store: Store;
  readonly name: string;
  readonly owner: string;
  readonly clock: Clock;
  readonly events: Events;
  readonly ttlMs?: number | undefined;
}

const AGAIN = { firstMs: 1_000, maxMs: 5_000 };

export function startLeader({ store, name, owner, clock, events, ttlMs = 15_000 }: LeaderOptions): Leader {
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
      }
      return ttlMs / 3;
    },
    failed: (error, consecutive) => {
      events.emit({ type: "store_error", during: "lead", error: errorText(error), consecutive });
      return backoffMs(AGAIN, consecutive);
    },
  });
  return {
    get held() {
      return clock.monotonicMs() < until;
    },
    async stop() {
      const held = this.held;
      await loop.stop();
      // The lease runs out by itself; giving it up only lets the next one begin sooner.
      if (held) await store.lead(name, owner, 0).catch(() => undefined);
    },
  };
}
