/**
 * What an execution would do, made before anything is claimed: every reason against it is found here, while nothing has happened yet.
 * Pure apart from what it reads.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { NewMessage } from "../../message/message.ts";
import { payloadHash } from "../../message/validate.ts";
import type { RedriveMode } from "../../store/redrive.ts";
import type { TopicStore } from "../../store/topics.ts";
import type { ActionContext, ActionPlan } from "../actions/action.ts";
import type { CatalogueAction } from "../actions/catalogue.ts";
import type { ExecuteOptions } from "../recovery.ts";
import { checkPlan, REDRIVE_LIMITS } from "../redrive/request.ts";
import type { ExecutionRedrive } from "../redrive/start.ts";
import { actionOf, blastRadiusOf, type CandidateDeps, type Found, wrongState } from "./found.ts";

export interface ExecutionPlan {
  readonly action: CatalogueAction;
  readonly context: ActionContext;
  readonly plan: ActionPlan;
  /** What is done to the group's messages; null: it has none, or nothing is to be done to them. */
  readonly mode: RedriveMode | null;
  readonly messages: readonly NewMessage[];
  readonly redrive: ExecutionRedrive["plan"];
}

export interface PlanDeps extends CandidateDeps {
  readonly topics: Pick<TopicStore, "get">;
  readonly ids: () => string;
}

export async function planExecution(
  deps: PlanDeps,
  found: Found,
  options: ExecuteOptions,
  { executionId, signal, messagesMax }: { executionId: string; signal: AbortSignal; messagesMax: number | undefined },
): Promise<ExecutionPlan> {
  const { candidate, group } = found;
  const { candidateId } = candidate;
  if (candidate.decision === "rejected")
    throw wrongState(candidate, `Candidate ${candidateId} was rejected: ask for a new suggestion.`);
  if (candidate.executionStatus !== "pending") {
    throw wrongState(candidate, `Candidate ${candidateId} is ${candidate.executionStatus}: it is executed once and no more.`);
  }
  const action = actionOf(found);
  const topic = await deps.topics.get(group.topic);
  const refusal = action.refusal?.({ group, topic }) ?? null;
  if (refusal !== null) {
    throw new MakegoodError("action_refused", `${action.code} cannot be done for candidate ${candidateId}: ${refusal}.`, {
      candidateId,
    });
  }
  const blastRadius = await blastRadiusOf(deps.recovery, group.groupId);
  refuseUnconfirmed(candidateId, blastRadius.messages, options.redrive?.confirm);
  const by = { actor: options.actor, reason: options.reason ?? null };
  const { template } = action;
  const context: ActionContext = { candidate, group, topic, blastRadius, template, ...by, executionId, signal };
  const plan = planOf(action, context);
  const mode = modeOf(plan, blastRadius.messages, candidateId, action.code);
  const messages = (plan.messages ?? []).map((each, i) => plannedMessage(each, deps.ids(), `execution:${executionId}:${i}`));
  const redrive = redrivePlan(action, options, messagesMax);
  checkPlan(redrive ?? {});
  return { action, context, plan, mode, messages, redrive };
}

/** Code of a program: whatever it throws, nothing has happened yet. */
function planOf(action: CatalogueAction, context: ActionContext): ActionPlan {
  try {
    return action.plan(context);
  } catch (thrown) {
    const { candidateId } = context.candidate;
    const text = `${action.code} could not be planned for candidate ${candidateId}: ${errorText(thrown)}`;
    throw new MakegoodError("action_refused", text, { candidateId, action: action.code }, thrown);
  }
}

/** Attack 26: what was seen is what is agreed to, and a very large number must have been seen. */
function refuseUnconfirmed(candidateId: number, messages: number, confirm: number | undefined): void {
  if (confirm === undefined ? messages <= REDRIVE_LIMITS.messagesUnconfirmed : confirm === messages) return;
  const text = `Candidate ${candidateId} touches ${messages} messages: execute it with redrive.confirm ${messages} if that is what you expect.`;
  throw new MakegoodError("confirmation_needed", text, { candidateId, messages });
}

function modeOf({ mode = "watch" }: ActionPlan, messages: number, candidateId: number, action: string): RedriveMode | null {
  if (messages > 0) return mode;
  // Nothing of ours: telling people and closing the matter is all that can be done about it.
  if (mode === "watch" || mode === "resolve") return null;
  const text = `${action} has nothing to do for candidate ${candidateId}: its group has no open dead letter of ours.`;
  throw new MakegoodError("nothing_selected", text, { candidateId });
}

function plannedMessage({ topic, payload }: { topic: string; payload: string }, id: string, key: string): NewMessage {
  return {
    id,
    topic,
    tenantId: null,
    key,
    payload,
    payloadHash: payloadHash(payload),
    delayMs: 0,
    priority: 0,
    orderingKey: null,
    traceparent: null,
    schemaVersion: null,
  };
}

/** The action's own carefulness, with what the person asked for over it. */
function redrivePlan(
  { template }: CatalogueAction,
  { redrive = {} }: ExecuteOptions,
  messagesMax: number | undefined,
): ExecutionRedrive["plan"] {
  const set = (name: string): number | undefined => {
    const value = template[name];
    return typeof value === "number" ? value : undefined;
  };
  const { canary, ratePerSecond, rampFrom, failureShareMax, failureMin, generationMax } = redrive;
  const asked = Math.min(redrive.select?.limit ?? Number.POSITIVE_INFINITY, messagesMax ?? Number.POSITIVE_INFINITY);
  return {
    canary: canary ?? set("canary"),
    ratePerSecond: ratePerSecond ?? set("rate_per_second"),
    rampFrom: rampFrom ?? set("ramp_from"),
    failureShareMax: failureShareMax ?? set("failure_share_max"),
    failureMin: failureMin ?? set("failure_min"),
    generationMax,
    limit: Number.isFinite(asked) ? asked : undefined,
  };
}
