/**
 * What follows from a settlement that was written, or could not be: the lane may have one message more, and one event says
 * what became of the attempt.
 */
import type { Events, MakegoodEvent } from "../observe/events.ts";
import type { SettleResult } from "../store/store.ts";
import type { Attempt } from "./attempt.ts";
import { dueAt } from "./lanes.ts";

export function announceSettled(attempt: Attempt, result: SettleResult, events: Events, nowMs: number): void {
  const { message, lane, settle } = attempt;
  if (!settle) return;
  const { settlement } = settle;
  if (result === "lost") {
    events.emit({ type: "claim_lost", topic: message.topic, id: message.id, attempt: message.attempt });
    return;
  }
  // We know what became due without asking the store: the message itself, or the next one of its ordering key.
  if (settlement.kind === "retry") dueAt(lane, nowMs + settlement.delayMs);
  else if (settlement.kind === "release" || message.orderingKey !== null) dueAt(lane, nowMs);
  if (settlement.kind === "release") return;
  if (events.heard || settlement.kind !== "delivered") events.emit(attemptEvent(attempt, settlement, settle.durationMs ?? 0));
}

const STATUS = { delivered: "delivered", retry: "pending", dead: "dead", hold: "held" } as const;

type Written = Exclude<NonNullable<Attempt["settle"]>["settlement"], { kind: "release" }>;

function attemptEvent({ message, alert }: Attempt, settlement: Written, ms: number): MakegoodEvent {
  const failed = settlement.kind === "delivered" ? null : settlement;
  return {
    type: "attempt",
    topic: message.topic,
    id: message.id,
    attempt: message.attempt,
    outcome: settlement.outcome,
    status: STATUS[settlement.kind],
    ms,
    code: failed?.code ?? null,
    error: failed?.error ?? null,
    alert,
  };
}
