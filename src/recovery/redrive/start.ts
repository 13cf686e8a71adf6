/** Starting a redrive: counted before it is frozen, refused where it could only go wrong. Pressing twice is one redrive. */
import { MakegoodError } from "../../message/errors.ts";
import type { Carrier } from "../../message/topic.ts";
import { payloadHash } from "../../message/validate.ts";
import type { TopicStore } from "../../store/topics.ts";
import type { Actor } from "../recovery.ts";
import { announce, keptSelect, type NewRedrive, type RedrivePreview, redriveLine, sends, writtenSelect } from "./redrive.ts";
import { redriveNotFound } from "./redrive-sql.ts";
import type { RedriveDeps } from "./redrives.ts";
import { checkPlan, checkRequest, defaultsOf, type ExecutionRequest, REDRIVE_LIMITS, type RedriveRequest } from "./request.ts";

type CheckedRequest = ReturnType<typeof checkRequest>;

/** `created` false: this key had started it already. */
export async function startRedrive(deps: RedriveDeps, request: RedriveRequest, actor: Actor) {
  const checked = checkRequest(request);
  const { select, mode, idempotencyKey, confirm, dryRun } = checked;
  const { redrives } = deps.recovery;
  const again = idempotencyKey !== null && (await redrives.find(idempotencyKey)) !== null;
  // The second time, the messages of the first are no longer there to be selected: only the first request is checked.
  const preview = again ? null : await redrives.preview(select, mode);
  if (select.redriveId !== undefined) await refuseUndoing(deps, select.redriveId);
  if (preview) await refuseHopeless(deps, checked, preview);
  const started = await beginAsked(deps, checked, preview, actor);
  if (!started) throw new MakegoodError("invariant_violated", "the redrive was not started", {});
  const { redriveId: id, status, counts, select: kept } = started.redrive;
  // Already running, or over: pressing again changes nothing. Still planned: the first process died before it ran, or was refused.
  const waits = !dryRun && status === "planned";
  if (!started.created && !waits) return started;
  if (confirm !== null && confirm !== counts.selected)
    throw unconfirmed({ messages: counts.selected, confirm, redriveId: id, seen: kept.seen });
  if (!waits) return started;
  const line = redriveLine("running", started.redrive, actor, checked.reason);
  const { redrive } = await redrives.change(id, { from: ["planned"], status: "running", reason: null }, [line]);
  return { ...started, redrive };
}

/** `asked`: what the second request of a key must have as well. Null: the candidate is no longer executing under this execution, and nothing was done. */
async function begin(
  { recovery, events, ids }: RedriveDeps,
  given: Omit<NewRedrive, "redriveId" | "actor" | "requestHash" | "provenance">,
  actor: Actor,
  asked: object,
  details: Readonly<Record<string, unknown>>,
) {
  const about = { ...given, redriveId: ids(), actor: actor.actor, requestHash: payloadHash(JSON.stringify(asked)) };
  const provenance = [redriveLine(given.status, about, actor, given.reason, details)];
  const started = await recovery.redrives.start({ ...about, provenance });
  if (started.kind === "lost") return null;
  const { kind, redrive } = started;
  if (kind === "conflict") {
    const { redriveId: id } = redrive;
    const { idempotencyKey } = given;
    const text = `idempotency key ${JSON.stringify(idempotencyKey)} belongs to redrive ${id}, which was asked for something else`;
    throw new MakegoodError("key_conflict", text, { id, idempotencyKey });
  }
  if (kind === "started") announce(events, redrive);
  return { redrive, created: kind === "started" };
}

function beginAsked(deps: RedriveDeps, checked: CheckedRequest, preview: RedrivePreview | null, actor: Actor) {
  const { mode, plan, reason, idempotencyKey, dryRun, confirm, elsewhere, afterRepair: repair } = checked;
  // A person who presses twice has looked twice: the mark is no part of what was asked for.
  const { seen: _, ...chosen } = checked.select;
  const select = { ...chosen, seen: preview?.seen };
  // With a number to compare, the list is frozen first: between counting and freezing, messages may move on.
  const status = dryRun || confirm !== null ? "planned" : "running";
  const done = { select, mode, candidateId: null, action: sends(mode) ? PERSONS_ACTION : null, reason, repair };
  const asked = { select: writtenSelect(chosen), mode, plan, reason, dryRun, elsewhere };
  const details = { mode, plan, repair, select: keptSelect(select) };
  return begin(deps, { ...done, idempotencyKey, status, plan: JSON.stringify(plan) }, actor, asked, details);
}

/** What was sent to a receiver cannot be taken back. */
async function refuseUndoing(deps: RedriveDeps, id: string): Promise<void> {
  const { mode } = await existing(deps, id);
  if (mode === "resolve" || mode === "discard") return;
  const text = `redrive ${id} did ${mode} its messages, and nothing undoes that: only what was resolved or discarded can be reopened`;
  throw new MakegoodError("wrong_state", text, { id, mode });
}

export async function existing({ recovery }: RedriveDeps, id: string) {
  const redrive = await recovery.redrives.get(id);
  if (!redrive) throw redriveNotFound(id);
  return redrive;
}

/** What a person redrives teaches what the same action of the engine would (decision 0019). */
const PERSONS_ACTION = "retry_exponential";

/** By the word of `SKIPPED` why messages are left alone, and what to do about it. */
const WHY: Readonly<Record<string, string>> = {
  generation_cap: "were replayed as often as may be (mend the cause, or raise generationMax)",
  held: "are held for a person (release their group, or say includeHeld, --include-held)",
  carried: "have a copy on its way to another receiver (wait until that is known)",
};

async function refuseHopeless(
  deps: RedriveDeps,
  { select, mode, confirm, dryRun, elsewhere }: CheckedRequest,
  preview: RedrivePreview,
) {
  const { messages, leftOut, seen } = preview;
  if (messages === 0) {
    const which = select.seen === undefined ? "no open dead letter" : "none of the open dead letters that were seen";
    throw new MakegoodError("nothing_selected", `${which} fits the selection: there is nothing to redrive`, { select });
  }
  if (messages === Object.values(leftOut).reduce((sum, n) => sum + n, 0)) {
    const why = Object.entries(leftOut).map(([reason, n]) => `${n} ${WHY[reason]}`);
    const text = `none of the ${messages} messages would be touched: ${why.join("; ")}`;
    throw new MakegoodError("nothing_selected", text, { messages, leftOut, generationMax: select.generationMax });
  }
  const fits = confirm === null ? dryRun || messages <= REDRIVE_LIMITS.messagesUnconfirmed : confirm === messages;
  if (!fits) throw unconfirmed({ messages, confirm, redriveId: null, seen });
  const topics = preview.topics.map(({ topic }) => topic);
  if (sends(mode)) await refuseUndelivered(deps, topics, elsewhere);
}

/** Fault 42: without a sink, a replay would only make dead letters, which people see, into pending ones, which they do not. */
export async function refuseUndelivered(
  { store, serves }: { readonly store: { readonly topics: Pick<TopicStore, "get"> }; readonly serves: RedriveDeps["serves"] },
  topics: readonly string[],
  elsewhere: boolean,
): Promise<void> {
  for (const topic of topics) {
    const record = await store.topics.get(topic);
    const problem = ((): string | null => {
      if (!record) return "is not declared any more: declare it again";
      if (record.disabledReason !== null) return `has a disabled sink (${record.disabledReason}): resume the topic first`;
      if (elsewhere || record.sink.kind !== "function" || serves(record)) return null;
      return "is delivered by a function, and this process has none: ask the process that has it (MAKEGOOD_URL), or say that one delivers it elsewhere (`elsewhere: true`, --elsewhere)";
    })();
    if (problem !== null)
      throw new MakegoodError("nobody_delivers", `nothing was replayed: topic ${topic} ${problem}`, { topic });
  }
}

function unconfirmed(seen: { messages: number; confirm: number | null; redriveId: string | null; seen?: string | undefined }) {
  const { messages, confirm, redriveId } = seen;
  const found = confirm === null ? `${messages} messages would be redriven` : `${messages} messages are selected, not ${confirm}`;
  const remedy =
    redriveId === null
      ? `look at them, then ask again with confirm ${messages}`
      : `they changed just now; their list is kept as redrive ${redriveId}: look at it, then resume or cancel it`;
  return new MakegoodError("confirmation_needed", `${found}: ${remedy}`, seen);
}

/** What an action wants done, under the fence of its execution. */
export interface ExecutionRedrive extends Pick<NewRedrive, "mode" | "reason" | "repair"> {
  readonly candidateId: number;
  readonly executionId: string;
  readonly groupId: number;
  readonly action: string;
  readonly carrier?: Carrier | undefined;
  readonly plan?: Omit<ExecutionRequest, "confirm"> | undefined;
}

export async function startForExecution(deps: RedriveDeps, execution: ExecutionRedrive, actor: Actor) {
  const { candidateId, executionId, groupId, action, mode, carrier, reason, repair, plan: asked = {} } = execution;
  const plan = sends(mode) ? checkPlan(asked) : defaultsOf(mode);
  const { limit = REDRIVE_LIMITS.messagesMax, generationMax = REDRIVE_LIMITS.generationMax, seen } = asked;
  const select = {
    groupId,
    // Who executes a candidate of a held group has its hold before them.
    includeHeld: true,
    seen,
    limit,
    // The cap is for what is sent again; a message that was replayed too often may still be resolved, watched, or go elsewhere once.
    generationMax: mode === "replay" || mode === "new_key" ? generationMax : REDRIVE_LIMITS.generationNone,
    copyGenerationMax: mode === "copy" ? generationMax : undefined,
  };
  const done = { select, mode, candidateId, executionId, action, reason, repair, plan: JSON.stringify({ ...plan, carrier }) };
  const given = { ...done, idempotencyKey: `execution:${executionId}`, status: "running" } as const;
  const started = await begin(deps, given, actor, { candidateId, executionId, mode, carrier }, { mode, carrier, plan });
  return started?.redrive ?? null;
}
