/**
 * The seven actions that are shipped. Each says what is done to the group's open dead letters; the engine does it under the
 * fence of an execution. Risk and approval are those of their effect: what may repeat or end an effect needs a person.
 */
import { backoffMs } from "../../platform/backoff.ts";
import { SYSTEM } from "../provenance.ts";
import { NOTIFY_TOPIC } from "../topics.ts";
import type { ActionContext, RecoveryAction } from "./action.ts";
import { rendered, type TemplateValues } from "./settings.ts";

/** How carefully messages are sent: members of a redrive's plan. */
const CAREFUL: TemplateValues = { canary: 5, rate_per_second: 50, ramp_from: 5, failure_share_max: 0.5 };

/** An execution without a person waits first, twice as long in each round; a person who executes has waited already. */
const WAIT = { firstMs: 30_000, maxMs: 3_600_000 };

type Effect = Pick<RecoveryAction, "risk" | "approval" | "isAutomated">;
const SAFE: Effect = { risk: "safe", approval: "none", isAutomated: true };
const RISKY: Effect = { risk: "risky", approval: "one", isAutomated: true };

/** The way out for failures that other services reported. */
export const CLAIM_INSTEAD =
  "claim the candidate, carry it out there and report its outcome, or report such failures with a redrive_topic";

const noTopic = ({ topic, group }: Pick<ActionContext, "topic" | "group">): string | null =>
  topic === null ? `${group.topic} is no topic of ours: nothing can be sent to it from here (${CLAIM_INSTEAD})` : null;

const noSink =
  (kind: "fallback" | "compensation"): RecoveryAction["refusal"] =>
  (context) =>
    noTopic(context) ??
    (context.topic?.[kind] === undefined ? `topic ${context.group.topic} has no ${kind} sink: give it one first` : null);

const text = (context: ActionContext, member: string): string => rendered(context.template, member, context);

/** What operators are sent, as one payload for every kind of sink. */
function notice({ group, candidate, executionId }: ActionContext, text: string): string {
  return JSON.stringify({
    text,
    group_id: group.groupId,
    candidate_id: candidate.candidateId,
    execution_id: executionId,
    topic: group.topic,
    error_code: group.errorCode,
    template: group.template,
    occurrence_count: group.occurrenceCount,
    open_messages: group.openMessages,
    failure_match_id: group.failureMatchId,
  });
}

const action = (
  actionCode: string,
  priority: number,
  actionType: RecoveryAction["actionType"],
  name: string,
  more: Effect & Pick<RecoveryAction, "plan"> & Partial<RecoveryAction>,
): RecoveryAction => {
  const any = { appliesToErrorCodes: [], appliesToTopics: [], inverse: null };
  return { actionCode, priority, actionType, name, template: CAREFUL, ...any, ...more };
};

export const ACTIONS: readonly RecoveryAction[] = [
  action("retry_exponential", 80, "retry", "Deliver again, a few first, then faster and faster", {
    ...SAFE,
    refusal: noTopic,
    plan: ({ actor, candidate: { round } }) => ({
      mode: "replay",
      ...(actor === SYSTEM.actor && { delayMs: backoffMs(WAIT, round) }),
    }),
  }),
  action("fallback_model", 70, "fallback", "Deliver through the topic's fallback sink", {
    ...RISKY,
    refusal: noSink("fallback"),
    plan: () => ({ mode: "copy", carrier: "fallback" }),
  }),
  action("circuit_breaker", 60, "reconfigure", "Open the breakers of the topics and let the messages wait for them", {
    ...RISKY,
    template: { ...CAREFUL, canary: 0, cooldown_ms: 60_000 },
    inverse: "close_breaker",
    refusal: noTopic,
    plan: () => ({ mode: "replay", openBreaker: true }),
  }),
  action("notify_ops", 50, "notify", "Tell the operators", {
    ...SAFE,
    template: { text: "{occurrences} failures of {topic} ({code}): {template}" },
    plan: (context) => ({ messages: [{ topic: NOTIFY_TOPIC, payload: notice(context, text(context, "text")) }] }),
  }),
  action("rollback_state", 40, "rollback", "Undo through the topic's compensation sink", {
    ...RISKY,
    approval: "two",
    refusal: noSink("compensation"),
    plan: () => ({ mode: "copy", carrier: "compensation" }),
  }),
  action("manual_intervention", 30, "manual", "Hold the group for a person", {
    ...SAFE,
    isAutomated: false,
    template: { owner: "operators", note: "{occurrences} failures of {topic} ({code}) need a person: {template}" },
    inverse: "release",
    plan: (context) => ({ hold: { owner: text(context, "owner").trim() || "operators", note: text(context, "note") } }),
  }),
  action("skip_task", 20, "skip", "Resolve the messages with a reason", {
    ...RISKY,
    isAutomated: false,
    template: { canary: 0, rate_per_second: 500, ramp_from: 500, failure_share_max: 1, reason: "skipped: {template}" },
    plan: (context) => ({ mode: "resolve", reason: text(context, "reason") }),
  }),
];

/** Their codes, by priority: between two actions about which nothing is known, the higher one comes first. */
export const SHIPPED_ACTIONS: ReadonlySet<string> = new Set(ACTIONS.map(({ actionCode }) => actionCode));
