/**
 * What an outcome says about the receiver, apart from the message: proof that it lives, a failure for its breaker to count, or
 * its wish to be sent nothing more; and what it says about this process, which may have to leave the topic to others.
 */
import { errorText } from "../message/errors.ts";
import type { Outcome } from "../message/outcome.ts";
import type { Events } from "../observe/events.ts";
import type { Try } from "./attempt.ts";
import type { Breakers } from "./breakers.ts";
import type { Why } from "./rest.ts";
import type { TopicState } from "./topic-state.ts";

export interface JudgeContext {
  readonly breakers: Breakers;
  readonly events: Events;
}

/** `running`: attempts of it that are under way here; absent: this one was alone. */
type Judged = Pick<TopicState, "name" | "breaker" | "entry"> & Partial<Pick<TopicState, "running">>;

export function judgeSink(attempt: Try, topic: Judged, outcome: Outcome, nowMs: number, context: JudgeContext): void {
  if (outcome.kind !== "unserved" && outcome.kind !== "interrupted") topic.entry?.rest.end();
  switch (outcome.kind) {
    case "delivered":
    case "duplicate":
    case "reject":
      topic.breaker.proved();
      return;
    case "retry":
      attempt.alert = outcome.alert === true;
      if (outcome.receiver === "answers") topic.breaker.proved();
      if (outcome.receiver !== undefined) return;
      topic.breaker.failed(attempt.message.id, attempt.startedMs, nowMs, `${outcome.code}: ${outcome.error}`);
      return;
    case "unknown":
      topic.breaker.failed(attempt.message.id, attempt.startedMs, nowMs, `${outcome.code}: ${outcome.error}`);
      return;
    case "disable":
      disable(topic, `${outcome.code}: ${outcome.error}`, context);
      return;
    case "unserved":
      leaveToOthers(attempt, topic, outcome, nowMs, context);
  }
}

/** The sink may have been replaced since: what the old one lacked says nothing about the new one. */
function leaveToOthers(attempt: Try, topic: Judged, { code, error }: Why, nowMs: number, { events }: JudgeContext): void {
  const { entry, running = 0 } = topic;
  const restMs = entry && entry.handle === attempt.handle ? entry.rest.begin({ code, error }, running, nowMs) : null;
  events.emit({ type: "unserved", topic: attempt.message.topic, id: attempt.message.id, code, error, restMs });
}

function disable(topic: Judged, reason: string, { breakers, events }: JudgeContext): void {
  if (!topic.entry || topic.entry.record.disabledReason !== null) return;
  topic.entry.record = { ...topic.entry.record, disabledReason: reason };
  events.emit({ type: "sink_disabled", topic: topic.name, reason });
  breakers.track(
    breakers.topicStore.disable(topic.name, reason).catch((error) => {
      events.emit({ type: "store_error", during: "disable", error: errorText(error), consecutive: 1 });
    }),
  );
}
