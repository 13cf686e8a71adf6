/**
 * The seven actions that are shipped. Each says what is done to the group's open dead letters; the engine does it under the
 * fence of an execution. Risk and approval are those of their effect: what may repeat or end an effect needs a person.
 */
import { backoffMs } from "../../platform/backoff.ts";
import { SYSTEM } from "../provenance.ts";
import { SHIPPED_ACTIONS } from "../rules/actions.ts";
import { NOTIFY_TOPIC } from "../topics.ts";
import type { ActionContext, ActionPlan, ActionType, ApprovalPolicy, RecoveryAction, RiskClass } from "./action.ts";
import { renderedTemplate, type TemplateValues } from "./template.ts";

/** How carefully messages are sent: members of a redrive's plan. */
const CAREFUL: TemplateValues = { canary: 5, rate_per_second: 50, ramp_from: 5, failure_share_max: 0.5 };

/** An execution without a person waits first, twice as long in each round; a person who executes has waited already. */
const WAIT = { firstMs: 30_000, maxMs: 3_600_000 };

interface Shipped {
  readonly name: string;
  readonly actionType: ActionType;
  readonly risk: RiskClass;
  readonly approval: ApprovalPolicy;
  readonly isAutomated: boolean;
  readonly template: TemplateValues;
  readonly inverse?: RecoveryAction["inverse"];
  readonly refusal?: RecoveryAction["refusal"];
  readonly plan: RecoveryAction["plan"];
}

function action(actionCode: string, shipped: Shipped): RecoveryAction {
  const priority = SHIPPED_ACTIONS.get(actionCode) ?? 50;
  return { actionCode, priority, appliesToErrorCodes: [], appliesToTopics: [], inverse: null, ...shipped };
}

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

const text = (context: ActionContext, member: string): string => {
  const value = renderedTemplate(context.template, context)[member];
  return value === undefined ? "" : String(value);
};

export const ACTIONS: readonly RecoveryAction[] = [
  action("retry_exponential", {
    name: "Deliver again, a few first, then faster and faster",
    actionType: "retry",
    risk: "safe",
    approval: "none",
    isAutomated: true,
    template: CAREFUL,
    refusal: noTopic,
    plan: ({ actor, candidate: { round } }): ActionPlan => ({
      mode: "replay",
      ...(actor === SYSTEM.actor && { delayMs: backoffMs(WAIT, round) }),
    }),
  }),
  action("fallback_model", {
    name: "Deliver through the topic's fallback sink",
    actionType: "fallback",
    risk: "risky",
    approval: "one",
    isAutomated: true,
    template: CAREFUL,
    refusal: noSink("fallback"),
    plan: () => ({ mode: "copy", carrier: "fallback" }),
  }),
  action("circuit_breaker", {
    name: "Open the breakers of the topics and let the messages wait for them",
    actionType: "reconfigure",
    risk: "risky",
    approval: "one",
    isAutomated: true,
    template: { ...CAREFUL, canary: 0, cooldown_ms: 60_000 },
    inverse: "close_breaker",
    refusal: noTopic,
    plan: () => ({ mode: "replay", openBreaker: true }),
  }),
  action("notify_ops", {
    name: "Tell the operators",
    actionType: "notify",
    risk: "safe",
    approval: "none",
    isAutomated: true,
    template: { text: "{occurrences} failures of {topic} ({code}): {template}" },
    plan: (context) => ({ messages: [{ topic: NOTIFY_TOPIC, payload: notice(context, text(context, "text")) }] }),
  }),
  action("rollback_state", {
    name: "Undo through the topic's compensation sink",
    actionType: "rollback",
    risk: "risky",
    approval: "two",
    isAutomated: true,
    template: CAREFUL,
    refusal: noSink("compensation"),
    plan: () => ({ mode: "copy", carrier: "compensation" }),
  }),
  action("manual_intervention", {
    name: "Hold the group for a person",
    actionType: "manual",
    risk: "safe",
    approval: "none",
    isAutomated: false,
    template: { owner: "operators", note: "{occurrences} failures of {topic} ({code}) need a person: {template}" },
    inverse: "release",
    plan: (context) => ({ hold: { owner: text(context, "owner").trim() || "operators", note: text(context, "note") } }),
  }),
  action("skip_task", {
    name: "Resolve the messages with a reason",
    actionType: "skip",
    risk: "risky",
    approval: "one",
    isAutomated: false,
    template: {
      ...CAREFUL,
      canary: 0,
      rate_per_second: 500,
      ramp_from: 500,
      failure_share_max: 1,
      reason: "skipped: {template}",
    },
    plan: (context) => ({ mode: "resolve", reason: text(context, "reason") }),
  }),
];
