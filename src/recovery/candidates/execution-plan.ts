/**
 * What an execution would do, made before anything is claimed: every reason against it is found here, while nothing has happened yet.
 * Pure apart from what it reads.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { NewMessage } from "../../message/message.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { isWellFormed, payloadHash } from "../../message/validate.ts";
import type { TopicStore } from "../../store/topics.ts";
import type { ActionContext, ActionPlan } from "../actions/action.ts";
import { refusalOf } from "../actions/applies.ts";
import type { CatalogueAction } from "../actions/catalogue.ts";
import { CLAIM_INSTEAD } from "../actions/shipped.ts";
import type { ExecuteOptions } from "../recovery.ts";
import type { RedriveMode, RedrivePreview } from "../redrive/redrive.ts";
import { checkExecutionRequest, checkPlan, type ExecutionRequest, REDRIVE_LIMITS } from "../redrive/request.ts";
import { type ExecutionRedrive, refuseUndelivered } from "../redrive/start.ts";
import type { Sends } from "./ending.ts";
import { actionOf, blastRadiusOf, type CandidateDeps, type Found, wrongState } from "./found.ts";

export interface ExecutionPlan {
  readonly action: CatalogueAction;
  readonly context: ActionContext;
  readonly plan: ActionPlan;
  /** What is done to the group's messages; null: it has none, or nothing is to be done to them. */
  readonly mode: RedriveMode | null;
  readonly messages: readonly NewMessage[];
  /** The topics whose breakers it opens. */
  readonly breakers: readonly string[];
  readonly redrive: ExecutionRedrive["plan"];
  /** What others reported: sent again through topics of ours, or ended with the execution. */
  readonly sends: Sends | undefined;
  readonly reportsThrough: number | undefined;
  /** By the monotonic clock of this process. */
  readonly startedMs: number;
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
    throw wrongState(candidate, `Candidate ${candidateId} is ${candidate.executionStatus}: a candidate is executed only once.`);
  }
  const { redrive: asked = {} } = options;
  checkExecutionRequest(asked);
  const action = actionOf(found);
  const blastRadius = await blastRadiusOf(deps.recovery, group.groupId, { seen: asked.seen });
  const reports = await deps.recovery.openReports(group.groupId, Math.min(messagesMax ?? REPORTS_MAX, REPORTS_MAX));
  const touched = (blastRadius.messages > 0 ? blastRadius : reports).topics.map((each) => each.topic);
  const topic = await refuseTopics(deps, found, action, touched);
  refuseUnseen(found, blastRadius, asked.seen);
  refuseUnconfirmed(candidateId, blastRadius, asked.confirm);
  const by = { actor: options.actor, reason: options.reason ?? null };
  const { template } = action;
  const context: ActionContext = { candidate, group, topic, blastRadius, template, ...by, executionId, signal };
  const plan = planOf(action, context);
  const resends = blastRadius.messages === 0 && touched.length > 0 && plan.mode === "replay" && !plan.openBreaker;
  const mode = resends ? null : modeOf(plan, blastRadius.messages, found, action.actionCode);
  const messages = (plan.messages ?? []).map((each, i) => plannedMessage(each, deps.ids(), `execution:${executionId}:${i}`));
  // Whether a worker elsewhere has the function cannot be known here: a person's redrive asks, an execution may begin anywhere.
  if (resends || mode === "replay" || mode === "new_key")
    await refuseUndelivered({ store: deps, serves: () => true }, touched, true);
  const redrive = redrivePlan(action, plan, asked, {
    seen: blastRadius.seen,
    messagesMax: Math.min(messagesMax ?? blastRadius.messages, blastRadius.messages),
  });
  checkPlan(redrive ?? {});
  const { canary = 0, failureShareMax = 1, delayMs = 0 } = redrive ?? {};
  const { through } = reports;
  const sends = resends ? { through, canary, failureShareMax, notBeforeMs: deps.clock.wallMs() + delayMs } : undefined;
  const reportsThrough = plan.mode === "resolve" && reports.open > 0 ? through : undefined;
  const breakers = plan.openBreaker ? touched : [];
  const startedMs = deps.clock.monotonicMs();
  return { action, context, plan, mode, messages, breakers, redrive, sends, reportsThrough, startedMs };
}

/** I10: reported failures of one execution; the rest is for the next. */
export const REPORTS_MAX = 10_000;

/** A group's messages may be in several topics, where groups were merged: what cannot be done in one of them is not begun. */
async function refuseTopics(
  { topics }: PlanDeps,
  { candidate: { candidateId }, group }: Found,
  action: CatalogueAction,
  touched: readonly string[],
): Promise<TopicRecord | null> {
  const own = await topics.get(group.topic);
  for (const name of touched.length > 0 ? touched : [group.topic]) {
    const topic = name === group.topic ? own : await topics.get(name);
    const refusal = refusalOf(action, { group: { ...group, topic: name }, topic });
    if (refusal === null) continue;
    const text = `${action.actionCode} cannot be done for candidate ${candidateId}: ${refusal}.`;
    throw new MakegoodError("action_refused", text, { candidateId, topic: name });
  }
  return own;
}

/** Code of a program: if it throws, nothing has happened yet. */
function planOf(action: CatalogueAction, context: ActionContext): ActionPlan {
  const { candidateId } = context.candidate;
  const refused = (why: string, thrown?: unknown): MakegoodError => {
    const text = `${action.actionCode} could not be planned for candidate ${candidateId}: ${why}`;
    return new MakegoodError("action_refused", text, { candidateId, action: action.actionCode }, thrown);
  };
  let plan: ActionPlan;
  try {
    plan = action.plan(context);
  } catch (thrown) {
    throw refused(errorText(thrown), thrown);
  }
  const texts = { reason: plan.reason, owner: plan.hold?.owner, note: plan.hold?.note };
  for (const [name, text] of Object.entries(texts)) {
    if (text?.includes("\0") || (text && !isWellFormed(text))) throw refused(`its ${name} contains NUL or half a surrogate pair`);
  }
  return plan;
}

/** Nothing is left of what was seen, and other messages are there: doing it to none of them is not what was agreed to. */
function refuseUnseen({ candidate, group }: Found, { messages }: RedrivePreview, seen: string | undefined): void {
  if (seen === undefined || messages > 0 || group.openMessages === 0) return;
  const { candidateId } = candidate;
  const text = `None of the messages that were seen for candidate ${candidateId} is left as it was: its group changed, or they moved on. Look at it again.`;
  throw new MakegoodError("nothing_selected", text, { candidateId, groupId: group.groupId });
}

/** Attack 26: a person agrees to what was seen, and must have seen a very large number. */
function refuseUnconfirmed(candidateId: number, { messages, seen }: RedrivePreview, confirm: number | undefined): void {
  if (confirm === undefined ? messages <= REDRIVE_LIMITS.messagesUnconfirmed : confirm === messages) return;
  const text = `Candidate ${candidateId} touches ${messages} messages: execute it with redrive.confirm ${messages} if that is what you expect.`;
  throw new MakegoodError("confirmation_needed", text, { candidateId, messages, seen });
}

function modeOf(
  { mode = "watch" }: ActionPlan,
  messages: number,
  { candidate, group }: Found,
  action: string,
): RedriveMode | null {
  if (messages > 0) return mode;
  // Nothing of ours: telling people and closing the matter is all that can be done about it.
  if (mode === "watch" || mode === "resolve") return null;
  const { candidateId } = candidate;
  const others = group.openReports > 0 ? ` Who reported its ${group.openReports} open failures can: ${CLAIM_INSTEAD}.` : "";
  const text = `${action} has nothing to do for candidate ${candidateId}: its group has no open dead letter of ours.${others}`;
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

/**
 * The action's own carefulness, with what the person asked for over it. What was not seen is not touched, also when messages move
 * meanwhile.
 */
function redrivePlan(
  { template }: CatalogueAction,
  { delayMs }: ActionPlan,
  asked: ExecutionRequest,
  { seen, messagesMax }: { readonly seen: string; readonly messagesMax: number },
): ExecutionRedrive["plan"] {
  const set = (name: string): number | undefined => {
    const value = template[name];
    return typeof value === "number" ? value : undefined;
  };
  const { canary, ratePerSecond, rampFrom, failureShareMax, failureMin, generationMax } = asked;
  return {
    canary: canary ?? set("canary"),
    ratePerSecond: ratePerSecond ?? set("rate_per_second"),
    rampFrom: rampFrom ?? set("ramp_from"),
    failureShareMax: failureShareMax ?? set("failure_share_max"),
    failureMin: failureMin ?? set("failure_min"),
    delayMs: asked.delayMs ?? set("delay_ms") ?? delayMs,
    generationMax,
    seen,
    limit: Math.min(asked.limit ?? messagesMax, messagesMax),
  };
}
