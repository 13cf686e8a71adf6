/**
 * What people and programs do to a message that is not in flight: replay, resolve, discard, cancel, reschedule. Fenced by revision,
 * and the provenance record is part of the same write.
 */
import type { Intervention, InterventionResult } from "../store.ts";
import { keyOf, park, tidy, unpark } from "./lanes.ts";
import { view } from "./read.ts";
import { hint, nowMs, type State, type Stored } from "./state.ts";

export function intervene(state: State, intervention: Intervention): InterventionResult {
  const { id, action, actor, reason, revision } = intervention;
  const stored = state.messages.get(id);
  if (!stored) return { kind: "not_found" };
  if (revision !== undefined && revision !== stored.revision) return { kind: "revision_conflict", revision: stored.revision };
  if (!allowed(stored, action)) return { kind: "wrong_state", status: stored.status, resolution: stored.resolution };

  const now = nowMs(state, intervention);
  stored.revision++;
  stored.provenance.push({ at: new Date(now), actor, action, reason });
  if (action === "replay") replay(state, stored, now);
  else if (action === "reschedule") reschedule(state, stored, now + (intervention.delayMs ?? 0));
  else close(state, stored, action === "resolve" ? "resolved" : "discarded", now);
  // A replay is due at once, and what was rescheduled may be; a closed head opens its ordering key for the next one.
  if (action === "replay" || action === "reschedule" || stored.ordered) hint(state, { kind: "work", lane: null });
  return { kind: "done", message: view(stored) };
}

function allowed(stored: Stored, action: Intervention["action"]): boolean {
  if (stored.status === "dead") return stored.resolution === "open" && action !== "cancel" && action !== "reschedule";
  if (stored.status !== "pending") return false;
  if (action === "discard" || action === "cancel") return true;
  return (stored.heldReason !== null) === (action !== "reschedule");
}

function reschedule(state: State, stored: Stored, dueMs: number): void {
  unpark(state, stored);
  stored.dueMs = dueMs;
  park(state, stored);
}

/** A new generation: due now, with a budget of its own, while the attempts keep growing. */
function replay(state: State, stored: Stored, now: number): void {
  leave(state, stored);
  stored.status = "pending";
  stored.generation++;
  stored.base = stored.attempts;
  stored.suspicion = 0;
  stored.retried = false;
  stored.dueMs = now;
  stored.heldReason = null;
  stored.diedMs = null;
  stored.resolution = null;
  park(state, stored);
}

function close(state: State, stored: Stored, resolution: "resolved" | "discarded", now: number): void {
  leave(state, stored);
  stored.status = "dead";
  stored.resolution = resolution;
  stored.heldReason = null;
  stored.diedMs ??= now;
  stored.settledMs = now;
}

/** Takes the message out of where it waits or blocks. */
function leave(state: State, stored: Stored): void {
  if (stored.status === "pending") {
    unpark(state, stored);
  } else if (stored.ordered) {
    const key = keyOf(state, stored);
    if (key.blockedBy === stored.message.id) key.blockedBy = null;
    tidy(state, stored);
  }
}
