/**
 * Why a pending message is not being attempted, in a stable word and a sentence: what holds it, else when it is due, else that it
 * is due and waits for a place. Pure; there is always a reason to show.
 */
import type { MessageView } from "./message.ts";
import type { TopicRecord } from "./topic.ts";
import { type Hold, holdOf, type Served } from "./worker-note.ts";

/** What decides whether a message is held. */
export interface Standing {
  /** Null: the topic was deleted. */
  readonly topic: TopicRecord | null;
  readonly served: Served;
  readonly nowMs: number;
}

/** Its own hold first, then what its topic is in, then its tenant. Null: nothing holds it. */
export function heldBy(message: MessageView, { topic, served }: Standing): Hold | null {
  if (message.status !== "pending") return null;
  const { heldReason, lastError, tenantId } = message;
  if (heldReason !== null) return { code: heldReason, reason: lastError ?? "held until a person decides" };
  if (topic === null) return { code: "topic_gone", reason: "its topic is not declared any more" };
  const hold = holdOf(topic, served);
  if (hold !== null || tenantId === null) return hold;
  const tenant = topic.breaker.tenants.find((one) => one.tenantId === tenantId);
  return tenant ? { code: "breaker_open", reason: `of this tenant alone: ${tenant.reason}` } : null;
}

/** Null unless it is pending. */
export function whyPending(message: MessageView, standing: Standing): Hold | null {
  const { status, nextAttemptAt, lastCode, orderingKey } = message;
  if (status !== "pending") return null;
  const held = heldBy(message, standing);
  if (held !== null) return held;
  if (nextAttemptAt !== null && nextAttemptAt.getTime() > standing.nowMs) {
    const when = `due at ${nextAttemptAt.toISOString()}`;
    return lastCode === null
      ? { code: "delayed", reason: when }
      : { code: "retry", reason: `its last attempt failed (${lastCode}), the next is ${when}` };
  }
  const limited = standing.topic && limitOf(standing.topic);
  if (limited) return limited;
  const order = orderingKey === null ? "" : "for its turn among those with its ordering key, or ";
  return { code: "due", reason: `due now, it waits ${order}for a free place in a worker` };
}

/** What all workers together keep to, where the topic has such a limit. */
function limitOf({ ratePerSecond, tenantRatePerSecond, concurrencyTotal }: TopicRecord): Hold | null {
  const rates = [
    ...(ratePerSecond === undefined ? [] : [`${ratePerSecond} of its topic`]),
    ...(tenantRatePerSecond === undefined ? [] : [`${tenantRatePerSecond} of its tenant`]),
  ];
  if (rates.length > 0) {
    return {
      code: "rate_limited",
      reason: `due now, it waits for its turn: attempts begun in a second are ${rates.join(" and ")}`,
    };
  }
  if (concurrencyTotal === undefined) return null;
  return { code: "concurrency_limited", reason: `due now, it waits for a place: ${concurrencyTotal} at once over all workers` };
}
