/**
 * Settling: writes exactly what a settlement says, under the claim that proves the right to. A stale token, a message that
 * is settled already or another attempt than the one in flight changes nothing and is answered `lost` (I4).
 */
import type { AttemptRecord } from "../../message/message.ts";
import type { Settle, Settlement } from "../../message/settlement.ts";
import type { At, SettleResult } from "../store.ts";
import { liveLease } from "./claim.ts";
import { keyOf, laneOf, park, tidy } from "./lanes.ts";
import { hint, nowMs, type State, type Stored } from "./state.ts";

export function settle(state: State, settles: readonly Settle[], at?: At): SettleResult[] {
  const now = nowMs(state, at);
  return settles.map((one) => settleOne(state, one, now));
}

function settleOne(state: State, { id, claim, attempt, durationMs, settlement }: Settle, now: number): SettleResult {
  const lease = liveLease(state, claim);
  const stored = state.messages.get(id);
  if (!lease?.open.has(id) || !stored || stored.attempts !== attempt) return "lost";
  lease.open.delete(id);
  if (lease.open.size === 0) state.leases.delete(lease.id);
  if (stored.ordered) keyOf(state, stored).inFlight = false;
  apply(state, stored, settlement, now);
  const record = attemptRecord(stored, attempt, durationMs, settlement, now);
  if (record) stored.history.push(record);
  const { lane } = laneOf(state, stored);
  tidy(state, stored);
  // Only where something became claimable: a retry, a release, or the next message of an ordering key.
  if (stored.status === "pending" || stored.ordered) hint(state, { kind: "work", lane });
  return "settled";
}

function apply(state: State, stored: Stored, settlement: Settlement, now: number): void {
  switch (settlement.kind) {
    case "delivered":
      stored.status = "delivered";
      stored.settledMs = now;
      return;
    case "retry":
      if (!settlement.counted) stored.attempts--;
      stored.suspicion = settlement.suspicion;
      stored.retried = settlement.retried === true;
      stored.dueMs = now + settlement.delayMs;
      break;
    case "hold":
      if (!settlement.counted) stored.attempts--;
      stored.heldReason = settlement.reason;
      break;
    case "release":
      stored.attempts--;
      break;
    case "dead":
      stored.status = "dead";
      stored.resolution = "open";
      stored.diedMs = now;
      stored.diedMark = ++state.marks;
      if (stored.ordered && settlement.blocksOrder) keyOf(state, stored).blockedBy = stored.message.id;
      return;
  }
  stored.status = "pending";
  park(state, stored);
}

/** One row for every attempt that was started (I5); what was only released leaves none. */
function attemptRecord(
  stored: Stored,
  attempt: number,
  durationMs: number | null,
  settlement: Settlement,
  now: number,
): AttemptRecord | null {
  if (settlement.kind === "release") return null;
  const failed = settlement.kind === "delivered" ? { code: null, error: null } : settlement;
  return {
    attempt,
    outcome: settlement.outcome,
    counted: settlement.kind === "retry" || settlement.kind === "hold" ? settlement.counted : true,
    at: new Date(now),
    durationMs,
    code: failed.code,
    error: failed.error,
    nextAttemptAt: settlement.kind === "retry" ? new Date(stored.dueMs) : null,
  };
}
