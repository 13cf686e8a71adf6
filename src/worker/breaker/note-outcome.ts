/**
 * What an outcome says about the receiver, apart from the message: proof that it lives, a failure for its breaker to count, or
 * its wish to be sent nothing more; and what it says about this process, which may have to leave the topic to others.
 */
import { errorText } from "../../message/errors.ts";
import type { ClaimedMessage } from "../../message/message.ts";
import type { Outcome } from "../../message/outcome.ts";
import type { Events } from "../../observe/events.ts";
import type { Why } from "../../topic/rest.ts";
import type { Try } from "../attempt.ts";
import type { TopicState } from "../topic-state.ts";
import type { Breakers } from "./breakers.ts";

export interface NoteContext {
  readonly breakers: Breakers;
  readonly events: Events;
}

/** `running`: attempts of it that are under way here; absent: this one was alone. */
type NotedTopic = Pick<TopicState, "name" | "breaker" | "entry"> & Partial<Pick<TopicState, "running">>;

export function noteOutcome(attempt: Try, topic: NotedTopic, outcome: Outcome, nowMs: number, context: NoteContext): void {
  if (outcome.kind !== "unserved" && outcome.kind !== "interrupted") topic.entry?.rest.end();
  const { id, tenantId } = attempt.message;
  if (outcome.kind === "retry") attempt.alert = outcome.alert === true;
  if (provesLife(outcome)) topic.breaker.proved(tenantId, nowMs);
  switch (outcome.kind) {
    case "retry":
    case "unknown":
      if (isEvidence(outcome)) {
        const first = neverFailed(attempt.message);
        topic.breaker.failed({ id, tenantId, first }, nowMs, `${outcome.code}: ${outcome.error}`);
      }
      return;
    case "disable":
      disable(topic, `${outcome.code}: ${outcome.error}`, context);
      return;
    case "unserved":
      leaveToOthers(attempt, topic, outcome, nowMs, context);
  }
}

type Claimed = Pick<ClaimedMessage, "attempt"> & Partial<Pick<ClaimedMessage, "base" | "handedDown" | "suspicion" | "retried">>;

/** An answer about the message itself, whichever it is. */
export function provesLife(outcome: Outcome): boolean {
  const { kind } = outcome;
  return (
    kind === "delivered" || kind === "duplicate" || kind === "reject" || (kind === "retry" && outcome.receiver === "answers")
  );
}

/** Something was sent or dialled, and what came of it may be the receiver's trouble. */
export function isEvidence(outcome: Extract<Outcome, { kind: "retry" | "unknown" }>): boolean {
  return outcome.kind === "unknown" || outcome.receiver === undefined;
}

/** As far as its claim tells. */
export function neverFailed({ attempt, base = 0, handedDown, suspicion = 0, retried }: Claimed): boolean {
  // Attempt 0 is the direct try itself.
  return attempt === 0 || (!retried && suspicion === 0 && !handedDown && attempt - base <= 1);
}

/** The sink may have been replaced since: what the old one lacked says nothing about the new one. */
function leaveToOthers(attempt: Try, topic: NotedTopic, { code, error }: Why, nowMs: number, { events }: NoteContext): void {
  const { entry, running = 0 } = topic;
  const restMs = entry && entry.handle === attempt.handle ? entry.rest.begin({ code, error }, running, nowMs) : null;
  events.emit({ type: "unserved", topic: attempt.message.topic, id: attempt.message.id, code, error, restMs });
}

function disable(topic: NotedTopic, reason: string, { breakers, events }: NoteContext): void {
  if (!topic.entry || topic.entry.record.disabledReason !== null) return;
  topic.entry.record = { ...topic.entry.record, disabledReason: reason };
  events.emit({ type: "sink_disabled", topic: topic.name, reason });
  breakers.calls.add(
    breakers.topicStore.disable(topic.name, reason).catch((error) => {
      events.emit({ type: "store_error", during: "disable", error: errorText(error), consecutive: 1 });
    }),
  );
}
