/**
 * Starting a redrive: what is asked for is checked as a whole, counted before it is frozen, and refused where it could only go wrong:
 * nothing selected, more than was confirmed, nobody to deliver it. Pressing twice is one redrive.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Carrier } from "../../message/topic.ts";
import { payloadHash } from "../../message/validate.ts";
import type { NewRedrive, Redrive, RedriveMode, RedrivePreview, RedriveSelect } from "../../store/redrive.ts";
import type { Actor } from "../recovery.ts";
import { announce } from "./announce.ts";
import type { RedriveDeps } from "./deps.ts";
import { planText } from "./kept-text.ts";
import { redriveLine } from "./provenance.ts";
import {
  type CheckedRequest,
  checkPlan,
  checkRequest,
  REDRIVE_DEFAULTS,
  REDRIVE_LIMITS,
  type RedrivePlan,
  type RedriveRequest,
} from "./request.ts";

export interface Started {
  readonly redrive: Redrive;
  /** False: this request key had started it already. */
  readonly created: boolean;
}

/** What an action wants done, under the fence of its execution. */
export interface ExecutionRedrive {
  readonly candidateId: number;
  readonly executionId: string;
  readonly groupId: number;
  readonly action: string;
  readonly mode: RedriveMode;
  /** For mode copy. */
  readonly carrier?: Carrier | undefined;
  readonly reason: string;
  readonly plan?:
    | (Partial<RedrivePlan> & { readonly generationMax?: number | undefined; readonly limit?: number | undefined })
    | undefined;
}

/** Neither touches a receiver: nothing to be careful about. */
const AT_ONCE: RedrivePlan = {
  ...REDRIVE_DEFAULTS,
  canary: 0,
  ratePerSecond: REDRIVE_LIMITS.ratePerSecondMax,
  rampFrom: REDRIVE_LIMITS.ratePerSecondMax,
  failureShareMax: 1,
};

export async function startRedrive(deps: RedriveDeps, request: RedriveRequest, actor: Actor): Promise<Started> {
  const checked = checkRequest(request);
  const { redrives } = deps.recovery;
  const again = checked.requestKey !== null && (await redrives.find(checked.requestKey)) !== null;
  // What was selected the first time is not there any more the second time: only the first is judged.
  const preview = again ? null : await redrives.preview(checked.select);
  if (preview) await refuseHopeless(deps, checked, preview);
  const redrive = newRedrive(deps, checked, actor);
  const started = await redrives.start(redrive);
  if (started.kind === "lost") throw new MakegoodError("invariant_violated", `redrive ${redrive.id} was not started`, {});
  if (started.kind === "conflict") throw keyTaken(checked.requestKey, started.redrive.id);
  if (started.kind === "same") return { redrive: started.redrive, created: false };
  announce(deps.events, started.redrive, null);
  const { selected } = started.redrive.counts;
  if (checked.confirm !== null && checked.confirm !== selected) throw unconfirmed(selected, checked.confirm, redrive.id);
  if (checked.dryRun || started.redrive.status !== "planned") return { redrive: started.redrive, created: true };
  const line = redriveLine("running", redrive, actor, checked.reason);
  const run = await redrives.change(redrive.id, { from: ["planned"], status: "running", reason: null }, [line]);
  return { redrive: run.kind === "not_found" ? started.redrive : run.redrive, created: true };
}

function newRedrive({ ids }: RedriveDeps, checked: CheckedRequest, actor: Actor): NewRedrive {
  const { select, mode, plan, reason, requestKey, dryRun, confirm, elsewhere } = checked;
  const about = { id: ids(), select, candidateId: null, action: PERSONS_ACTION };
  // With a number to compare, the list is frozen first: between counting and freezing, messages may die.
  const status = dryRun || confirm !== null ? "planned" : "running";
  const line = redriveLine(status, about, actor, reason, { mode, plan, select: { ...select, ids: select.ids?.length } });
  return {
    ...about,
    requestKey,
    requestHash: payloadHash(JSON.stringify({ select, mode, plan, reason, dryRun, elsewhere })),
    status,
    mode,
    actor: actor.actor,
    reason,
    plan: planText(plan),
    provenance: [line],
  };
}

/** What a person redrives teaches what the same action of the engine would (decision 0019). */
const PERSONS_ACTION = "retry_exponential";

async function refuseHopeless(
  deps: RedriveDeps,
  { select, confirm, dryRun, elsewhere }: CheckedRequest,
  preview: RedrivePreview,
) {
  const { messages, overGeneration } = preview;
  if (messages === 0) {
    throw new MakegoodError("nothing_selected", "no open dead letter fits the selection: there is nothing to redrive", {
      select,
    });
  }
  if (messages === overGeneration) {
    const text = `all ${messages} messages were replayed ${select.generationMax} times or more: mend the cause, or raise generationMax`;
    throw new MakegoodError("nothing_selected", text, { messages, overGeneration, generationMax: select.generationMax });
  }
  if (confirm !== null && confirm !== messages) throw unconfirmed(messages, confirm, null);
  if (confirm === null && !dryRun && messages > REDRIVE_LIMITS.messagesUnconfirmed) throw unconfirmed(messages, null, null);
  await refuseUndelivered(
    deps,
    preview.topics.map(({ topic }) => topic),
    elsewhere,
  );
}

/** Fault 42: replaying to nobody would only turn dead letters that are seen into pending ones that are not. */
export async function refuseUndelivered(
  { store, serves }: RedriveDeps,
  topics: readonly string[],
  elsewhere: boolean,
): Promise<void> {
  for (const topic of topics) {
    const record = await store.topics.get(topic);
    const problem = ((): string | null => {
      if (!record) return "is not declared any more: declare it again";
      if (record.disabledReason !== null) return `has a disabled sink (${record.disabledReason}): resume the topic first`;
      if (elsewhere || record.sink.kind !== "function" || serves(record)) return null;
      return "is delivered by a function, and this process has none: start it where the function is, or say that it is served elsewhere";
    })();
    if (problem !== null)
      throw new MakegoodError("nobody_delivers", `nothing was replayed: topic ${topic} ${problem}`, { topic });
  }
}

function unconfirmed(messages: number, confirm: number | null, redriveId: string | null): MakegoodError {
  const seen = confirm === null ? `${messages} messages would be redriven` : `${messages} messages are selected, not ${confirm}`;
  const remedy =
    redriveId === null
      ? `look at them, then ask again with confirm ${messages}`
      : `they changed just now; their list is kept as redrive ${redriveId}: look at it, then resume or cancel it`;
  return new MakegoodError("confirmation_needed", `${seen}: ${remedy}`, { messages, confirm, redriveId });
}

function keyTaken(requestKey: string | null, id: string): MakegoodError {
  const text = `request key ${JSON.stringify(requestKey)} belongs to redrive ${id}, which was asked for something else`;
  return new MakegoodError("key_conflict", text, { id, requestKey });
}

/** Null: the candidate is no longer executing under this execution, and nothing was done. */
export async function startForExecution(deps: RedriveDeps, execution: ExecutionRedrive, actor: Actor): Promise<Redrive | null> {
  const { candidateId, executionId, groupId, action, mode, carrier, reason, plan: asked = {} } = execution;
  const touches = mode !== "resolve" && mode !== "watch";
  const plan = touches ? checkPlan(asked, REDRIVE_DEFAULTS) : AT_ONCE;
  const { limit = REDRIVE_LIMITS.messagesMax, generationMax = REDRIVE_LIMITS.generationMax } = asked;
  // The cap is for what is sent again; a message that was replayed too often may still be resolved, watched, or go elsewhere once.
  const select: RedriveSelect = {
    groupId,
    limit,
    generationMax: mode === "replay" || mode === "new_key" ? generationMax : 32_767,
    copyGenerationMax: mode === "copy" ? generationMax : undefined,
  };
  const about = { id: deps.ids(), select, candidateId, action };
  const started = await deps.recovery.redrives.start({
    ...about,
    requestKey: `execution:${executionId}`,
    requestHash: payloadHash(JSON.stringify({ candidateId, executionId, mode, carrier })),
    status: "running",
    mode,
    actor: actor.actor,
    reason,
    plan: planText({ ...plan, carrier }),
    executionId,
    provenance: [redriveLine("running", about, actor, reason, { mode, carrier, plan })],
  });
  if (started.kind === "lost") return null;
  if (started.kind === "conflict") throw keyTaken(`execution:${executionId}`, started.redrive.id);
  if (started.kind === "started") announce(deps.events, started.redrive, null);
  return started.redrive;
}
