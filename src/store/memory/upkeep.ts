/**
 * Retention and leadership. Only what is settled and past its time is deleted (I2); leadership saves work and never
 * provides safety (I9).
 */
import type { At, Leadership, PruneRequest } from "../store.ts";
import { dedupeScope } from "./enqueue.ts";
import { nowMs, type State, type Stored } from "./state.ts";

export function prune(state: State, request: PruneRequest): number {
  const before = nowMs(state, request) - request.keptMs;
  let gone = 0;
  for (const stored of state.messages.values()) {
    if (gone >= request.limit) break;
    // Null for everything that is pending, in flight or an open dead letter.
    if (stored.settledMs === null || stored.settledMs > before) continue;
    forget(state, stored);
    gone++;
  }
  return gone;
}

/** It waits nowhere and is in no lease any more. */
export function forget(state: State, { message }: Stored): void {
  state.messages.delete(message.id);
  // The key protects as long as its message lives.
  const scope = dedupeScope(message);
  // An edit may have handed it to another one (recovery/edit.ts).
  if (scope !== null && state.dedupe.get(scope) === message.id) state.dedupe.delete(scope);
}

export function lead(state: State, name: string, owner: string, ttlMs: number, at?: At): Leadership {
  const now = nowMs(state, at);
  const leader = state.leaders.get(name) ?? { owner: "", term: 0n, untilMs: 0 };
  if (ttlMs > 0 && (leader.owner === owner || leader.untilMs <= now)) {
    if (leader.owner !== owner) leader.term++;
    leader.owner = owner;
    leader.untilMs = now + ttlMs;
  } else if (ttlMs <= 0 && leader.owner === owner) {
    leader.owner = "";
    leader.untilMs = 0;
  }
  state.leaders.set(name, leader);
  return { held: ttlMs > 0 && leader.owner === owner, term: String(leader.term), owner: leader.owner };
}
