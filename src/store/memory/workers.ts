/**
 * What workers say of themselves, in memory: kept for as long as each asked for, the newest of too many.
 */
import { LIMITS } from "../../message/limits.ts";
import { silent, WORKER, type WorkerNote } from "../../message/worker-note.ts";
import type { At } from "../store.ts";
import { nowMs, type State } from "./state.ts";

export function announce(state: State, note: WorkerNote, ttlMs: number, at?: At): void {
  const now = nowMs(state, at);
  state.workers.delete(note.owner);
  for (const [owner, { untilMs }] of state.workers) if (untilMs <= now) state.workers.delete(owner);
  if (ttlMs > 0) state.workers.set(note.owner, { note: structuredClone(note), untilMs: now + ttlMs });
  const [oldest] = state.workers.keys();
  if (state.workers.size > LIMITS.workersMax && oldest !== undefined) state.workers.delete(oldest);
}

export function workers(state: State, at?: At): WorkerNote[] {
  const now = nowMs(state, at);
  const said = [...state.workers.values()].filter(({ untilMs }) => untilMs > now).map(({ note }) => structuredClone(note));
  const holders = [...state.leases.values()].filter(({ untilMs }) => untilMs > now).map(({ owner }) => owner);
  const unheard = [...new Set(holders)].filter((owner) => owner.startsWith(WORKER) && !state.workers.has(owner));
  return [...said, ...unheard.slice(0, LIMITS.workersMax).map(silent)];
}
