/**
 * Retention and leadership. Only what is settled and past its time is deleted (I2); leadership saves work and never
 * provides safety (I9).
 */
import type { Fence } from "../../platform/job.ts";
import { leadershipLost } from "../shared/leadership.ts";
import { tellWent } from "../shared/tell-went.ts";
import type { At, Leadership, PruneRequest } from "../store.ts";
import { dedupeScope } from "./enqueue.ts";
import { nowMs, type State, type Stored } from "./state.ts";

export function prune(state: State, request: PruneRequest): number {
  const { keptMs, deadKeptMs = keptMs, under, dryRun = false } = request;
  const now = nowMs(state, request);
  if (under && !leads(state, under, now)) throw leadershipLost(under);
  let [gone, dead] = [0, 0];
  for (const stored of state.messages.values()) {
    if (gone >= request.limit && !dryRun) break;
    // Null for everything that is pending, in flight or an open dead letter.
    const stays = stored.status === "dead" ? Math.max(keptMs, deadKeptMs) : keptMs;
    if (stored.settledMs === null || stored.settledMs > now - stays) continue;
    if (!dryRun) forget(state, stored);
    gone++;
    if (stored.status === "dead") dead++;
  }
  if (!dryRun) tellWent(request, gone, dead);
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

function leads(state: State, { name, owner, term }: Fence, now: number): boolean {
  const leader = state.leaders.get(name);
  return leader !== undefined && leader.owner === owner && String(leader.term) === term && leader.untilMs > now;
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
