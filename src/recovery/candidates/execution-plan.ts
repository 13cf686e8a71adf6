/** What an execution would do, made before anything is claimed: every reason against it is found while nothing has happened yet. */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { NewMessage } from "../../message/message.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { isWellFormed, payloadHash } from "../../message/validate.ts";
import type { ActionContext, ActionPlan } from "../actions/action.ts";
import { refusalOf } from "../actions/applies.ts";
import type { CatalogueAction } from "../actions/catalogue.ts";
import { CLAIM_INSTEAD } from "../actions/shipped.ts";
import type { ExecuteOptions } from "../recovery.ts";
import type { RedriveMode, RedrivePreview } from "../redrive/redrive.ts";
import { checkExecutionRequest, checkPlan, type ExecutionRequest, REDRIVE_LIMITS } from "../redrive/request.ts";
import { type ExecutionRedrive, refuseUndelivered } from "../redrive/start.ts";
import { actionOf, blastRadiusOf, type CandidateDeps, type Found, wrongState } from "./found.ts";
import { PLAIN_MESSAGE } from "./rounds.ts";

export type ExecutionPlan = Awaited<ReturnType<typeof planExecution>>;

/** I10: reported failures of one execution; the rest is for the next. */
export const REPORTS_MAX = 10_000;

export async function planExecution(deps: CandidateDeps, found: Found, options: ExecuteOptions, messagesMax: number) {
  const { candidate, group } = found;
  const { candidateId, groupId, decision, executionStatus } = candidate;
  if (decision === "rejected") throw wrongState(candidate, `Candidate ${candidateId} was rejected: ask for a new suggestion.`);
  if (executionStatus !== "pending") {
    throw wrongState(candidate, `Candidate ${candidateId} is ${executionStatus}: a candidate is executed only once.`);
  }
  const { redrive: asked = {}, reason = null, actor, afterRepair: repair } = options;
  checkExecutionRequest(asked);
  const action = actionOf(found);
  const { actionCode, template } = action;
  const blastRadius = await blastRadiusOf(deps.recovery, groupId, { seen: asked.seen });
  const { through, ...reports } = await deps.recovery.openReports(groupId, Math.min(messagesMax, REPORTS_MAX));
  const touched = (blastRadius.messages > 0 ? blastRadius : reports).topics.map((each) => each.topic);
  const topic = await refuseTopics(deps, found, action, touched);
  refuseUnseen(found, blastRadius, asked);
  const abort = new AbortController();
  const fence = { executionId: deps.ids(), signal: abort.signal };
  const context: ActionContext = { candidate, group, topic, blastRadius, template, actor, reason, ...fence };
  const plan = planOf(action, context);
  const resends = blastRadius.messages === 0 && touched.length > 0 && plan.mode === "replay" && !plan.openBreaker;
  const mode = resends ? null : modeOf(plan, blastRadius.messages, found);
  // Whether a worker elsewhere has the function cannot be known here: a person's redrive asks, an execution may begin anywhere.
  if (resends || mode === "replay" || mode === "new_key")
    await refuseUndelivered({ store: deps, serves: () => true }, touched, true);
  const careful = carefulness(action, plan, asked, blastRadius, messagesMax);
  checkPlan(careful);
  const { canary = 0, failureShareMax = 1, delayMs = 0 } = careful;
  const sends = { through, canary, failureShareMax, notBeforeMs: deps.clock.wallMs() + delayMs };
  const why = plan.reason?.trim() || reason || `candidate ${candidateId}: ${actionCode}`;
  const { executionId } = context;
  const messages = (plan.messages ?? []).map(({ topic: to, payload }, i): NewMessage => {
    const key = `execution:${executionId}:${i}`;
    return { ...PLAIN_MESSAGE, id: deps.ids(), topic: to, key, payload, payloadHash: payloadHash(payload) };
  });
  const about = { candidateId, executionId, groupId, action: actionCode, reason: why, repair };
  return {
    action,
    context,
    abort,
    plan,
    messages,
    /** The topics whose breakers it opens. */
    breakers: plan.openBreaker ? touched : [],
    /** What is done to the group's messages; null: it has none, or nothing is to be done to them. */
    redrive: mode && ({ ...about, mode, carrier: plan.carrier, plan: careful } satisfies ExecutionRedrive),
    /** What others reported: sent again through topics of ours, or ended with the execution. */
    sends: resends ? sends : undefined,
    reportsThrough: plan.mode === "resolve" && reports.open > 0 ? through : undefined,
    startedMs: deps.clock.monotonicMs(),
  };
}

/** A group's messages may be in several topics, where groups were merged: what cannot be done in one of them is not begun. */
async function refuseTopics(
  { topics }: CandidateDeps,
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

function refuseUnseen({ candidate, group }: Found, preview: RedrivePreview, { seen, confirm }: ExecutionRequest): void {
  const { candidateId, groupId } = candidate;
  const { messages } = preview;
  // Nothing is left of what was seen, and other messages are there: doing it to none of them is not what was agreed to.
  if (seen !== undefined && messages === 0 && group.openMessages > 0) {
    const text = `None of the messages that were seen for candidate ${candidateId} is left as it was: its group changed, or they moved on. Look at it again.`;
    throw new MakegoodError("nothing_selected", text, { candidateId, groupId });
  }
  // Attack 26: a person agrees to what was seen, and must have seen a very large number.
  if (confirm === undefined ? messages <= REDRIVE_LIMITS.messagesUnconfirmed : confirm === messages) return;
  const text = `Candidate ${candidateId} touches ${messages} messages: execute it with redrive.confirm ${messages} if that is what you expect.`;
  throw new MakegoodError("confirmation_needed", text, { candidateId, messages, seen: preview.seen });
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

function modeOf({ mode = "watch" }: ActionPlan, messages: number, { candidate, group }: Found): RedriveMode | null {
  if (messages > 0) return mode;
  // Nothing of ours: telling people and closing the matter is all that can be done about it.
  if (mode === "watch" || mode === "resolve") return null;
  const { candidateId, selectedAction } = candidate;
  const others = group.openReports > 0 ? ` Who reported its ${group.openReports} open failures can: ${CLAIM_INSTEAD}.` : "";
  const text = `${selectedAction} has nothing to do for candidate ${candidateId}: its group has no open dead letter of ours.${others}`;
  throw new MakegoodError("nothing_selected", text, { candidateId });
}

/** The action's own, with what the person asked for over it. What was not seen is not touched, also when messages move meanwhile. */
function carefulness(
  { template }: CatalogueAction,
  { delayMs }: ActionPlan,
  asked: ExecutionRequest,
  { seen, messages }: RedrivePreview,
  messagesMax: number,
) {
  const set = (name: string): number | undefined => {
    const value = template[name];
    return typeof value === "number" ? value : undefined;
  };
  return {
    canary: asked.canary ?? set("canary"),
    ratePerSecond: asked.ratePerSecond ?? set("rate_per_second"),
    rampFrom: asked.rampFrom ?? set("ramp_from"),
    failureShareMax: asked.failureShareMax ?? set("failure_share_max"),
    failureMin: asked.failureMin ?? set("failure_min"),
    delayMs: asked.delayMs ?? set("delay_ms") ?? delayMs,
    concurrency: asked.concurrency,
    generationMax: asked.generationMax,
    seen,
    limit: Math.min(asked.limit ?? messages, messages, messagesMax),
  };
}
