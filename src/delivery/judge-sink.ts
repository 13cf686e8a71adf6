/**
 * What an outcome says about the receiver, apart from the message: proof that it lives, a failure for its breaker to count, or
 * its wish to be sent nothing more; and what it says about this process, which may have to leave the topic to others.
 */
import { errorText } from "../message/errors.ts";
import type { Outcome } from "../message/outcome.ts";
import type { Events } from "../observe/events.ts";
import type { TopicStore } from "../store/topics.ts";
import type { Attempt } from "./attempt.ts";
import type { Why } from "./rest.ts";
import type { TopicState } from "./topic-state.ts";

export interface JudgeContext {
  readonly topicStore: TopicStore;
  readonly events: Events;
  readonly track: (call: Promise<unknown>) => void;
}

export function judgeSink(attempt: Attempt, outcome: Outcome, nowMs: number, context: JudgeContext): void {
  const { topic } = attempt.lane;
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
      leaveToOthers(attempt, outcome, nowMs, context);
  }
}

/** The sink may have been replaced since: what the old one lacked says nothing about the new one. */
function leaveToOthers(attempt: Attempt, { code, error }: Why, nowMs: number, { events }: JudgeContext): void {
  const { entry } = attempt.lane.topic;
  const restMs = entry && entry.handle === attempt.handle ? entry.rest.begin({ code, error }, nowMs) : null;
  events.emit({ type: "unserved", topic: attempt.message.topic, id: attempt.message.id, code, error, restMs });
}

function disable(topic: TopicState, reason: string, { topicStore, events, track }: JudgeContext): void {
  if (!topic.entry || topic.entry.record.disabledReason !== null) return;
  topic.entry.record = { ...topic.entry.record, disabledReason: reason };
  events.emit({ type: "sink_disabled", topic: topic.name, reason });
  track(
    topicStore.disable(topic.name, reason).catch((error) => {
      events.emit({ type: "store_error", during: "disable", error: errorText(error), consecutive: 1 });
    }),
  );
}
