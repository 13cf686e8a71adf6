/**
 * Executes a candidate, once: one write claims it, with a fence and a lease, before any side effect. From its redrive on, any process
 * carries it further; a process that dies before that leaves a lease that runs out, and then only a person ends it.
 */
import { errorText, isMakegoodError, MakegoodError } from "../../message/errors.ts";
import { within } from "../../platform/clock.ts";
import type { ActionContext } from "../actions/action.ts";
import type { ExecuteOptions } from "../recovery.ts";
import type { Redrive } from "../redrive/redrive.ts";
import { NOTIFY_DEFINITION, NOTIFY_TOPIC } from "../topics.ts";
import { exploredBy } from "./auto-execution.ts";
import type { Candidate } from "./candidate.ts";
import type { ExecutionStatus } from "./candidate-state.ts";
import { resend } from "./completion.ts";
import { confidenceNow } from "./evaluate-failure.ts";
import { type ExecutionPlan, planExecution } from "./execution-plan.ts";
import { ending, starting } from "./execution-record.ts";
import { type CandidateDeps, change, type Found, find, refuseUnapproved, writtenOf } from "./found.ts";

const HOUR_MS = 3_600_000;
const RESULT_CHARS_MAX = 4_096;

/** It begins by itself; `instead`: another action than the suggestion, to learn about it. */
export interface Automatic {
  readonly instead: string | undefined;
}

export async function execute(deps: CandidateDeps, candidateId: number, options: ExecuteOptions, auto?: Automatic) {
  const { recovery, hooks, settings } = deps;
  const found = await find(deps, candidateId, options.version, auto?.instead);
  const planned = await planExecution(deps, found, options, auto ? settings.autoMessagesMax : Number.POSITIVE_INFINITY);
  await refuseUnapproved(recovery, found, options);
  if (auto) refuseChanged(found);
  const candidate = await claim(deps, found, planned, options, auto);
  const { executionId } = planned.context;
  await hooks.tell("on_execution_start", { candidate, group: found.group, executionId });
  if (!planned.sends) return carryOut(deps, planned, options);
  // From the claim on any process carries it further.
  await resend(deps, candidate).catch(() => undefined);
  return (await find(deps, candidateId)).candidate;
}

/** It was evaluated for the group as it was; since then a person may have taken it. The claim needs this version. */
function refuseChanged({ candidate, group }: Found): void {
  const { candidateId, groupVersion } = candidate;
  const why = group.heldBy !== null ? `is held for ${group.heldBy}` : group.version !== groupVersion ? "changed" : null;
  if (why === null) return;
  const text = `Candidate ${candidateId} does not run by itself: its group ${why} since it was evaluated. A person can execute it.`;
  throw new MakegoodError("action_refused", text, { candidateId, groupId: group.groupId });
}

async function claim(
  { topics, recovery, settings }: CandidateDeps,
  found: Found,
  planned: ExecutionPlan,
  options: ExecuteOptions,
  auto: Automatic | undefined,
): Promise<Candidate> {
  const { candidate, suggested } = found;
  const { candidateId, version, selectedAction } = candidate;
  const { messages, breakers, sends, plan, reportsThrough } = planned;
  const { executionId, blastRadius } = planned.context;
  if (messages.some(({ topic }) => topic === NOTIFY_TOPIC) && (await topics.get(NOTIFY_TOPIC)) === null) {
    await topics.put(NOTIFY_DEFINITION, "api");
  }
  // What sends reported failures again, any process carries on.
  const begun = { executionId, leaseMs: sends ? null : settings.executionLeaseMs, reportsThrough };
  const started = { hold: plan.hold, sends, breakers: breakers.length > 0 ? breakers : undefined };
  const explored_instead_of = auto?.instead && suggested;
  const details = { messages: blastRadius.messages, approvals: candidate.approvals.length, explored_instead_of };
  const { patch, ...start } = starting(found, options, begun, started, details);
  const explored = auto?.instead && { selectedAction, evaluation: exploredBy(candidate, suggested) };
  const executionsMax = settings.autoExecutionsPerHour;
  const written = await recovery.write({
    candidateId,
    version,
    ...start,
    patch: { ...patch, ...explored },
    messages,
    budget: auto && { executedBy: options.actor, windowMs: HOUR_MS, executionsMax },
  });
  return writtenOf(candidateId, written);
}

type Result = Record<string, unknown>;

async function carryOut(deps: CandidateDeps, planned: ExecutionPlan, options: ExecuteOptions): Promise<Candidate> {
  const { action, redrive: asked, messages, plan, breakers } = planned;
  const mode = asked?.mode ?? null;
  const result: Result = { action: action.actionCode, mode, messages: messages.map(({ id }) => id) };
  const finished = (status: ExecutionStatus) => finish(deps, planned, options, status, result);
  const outside = plan.run !== undefined || breakers.length > 0;
  // What went out with the claim is done.
  let touched = messages.length > 0;
  let redrive: Redrive | null;
  let ended: ExecutionStatus | null;
  try {
    if (outside) await renew(deps, planned);
    touched ||= outside;
    ended = await run(deps, planned, result);
    redrive = ended === null ? await begin(deps, planned, options, result) : null;
  } catch (thrown) {
    if (!isCertain(thrown, touched)) throw thrown;
    result.error = errorText(thrown).slice(0, RESULT_CHARS_MAX);
    // If this cannot be written either, the first error is thrown, and the lease runs out.
    return finished("failed").catch(() => {
      throw thrown;
    });
  }
  if (ended !== null) return finished(ended);
  if (redrive !== null) result.redrive_id = redrive.redriveId;
  // Watching goes on for as long as it takes; what was to be done is done.
  if (redrive === null || mode === "watch") return finished("succeeded");
  return (await find(deps, planned.context.candidate.candidateId)).candidate;
}

/** Hooks may take long: a side effect outside the store begins only with a whole lease ahead of it. */
async function renew({ recovery, settings }: CandidateDeps, { context }: ExecutionPlan): Promise<void> {
  const { executionId, candidate } = context;
  const patch = { leaseMs: settings.executionLeaseMs };
  const { candidateId } = candidate;
  const written = await recovery.write({ candidateId, executionId, leased: true, patch, provenance: [] });
  if (written.kind !== "done") throw lost(context);
}

/** Code of a registered action. Past its time it may still be running: then its outcome is unknown. */
async function run({ settings, clock }: CandidateDeps, planned: ExecutionPlan, result: Result): Promise<ExecutionStatus | null> {
  const { plan, context, abort } = planned;
  if (plan.run === undefined) return null;
  const timeoutMs = Math.min(settings.runTimeoutMs, settings.executionLeaseMs / 2);
  try {
    const running = Promise.resolve(plan.run(context)).then((value) => ({ value }));
    const ran = await within(clock, running, timeoutMs);
    if (ran === null) {
      abort.abort();
      result.error = `it took longer than ${timeoutMs} ms: what became of it must be looked at`;
      return "unknown";
    }
    result.answer = bounded(ran.value);
    return null;
  } catch (thrown) {
    result.error = errorText(thrown).slice(0, RESULT_CHARS_MAX);
    return "failed";
  }
}

async function begin(
  deps: CandidateDeps,
  { action, breakers, redrive, context }: ExecutionPlan,
  by: ExecuteOptions,
  result: Result,
): Promise<Redrive | null> {
  const cooldownMs = typeof action.template.cooldown_ms === "number" ? action.template.cooldown_ms : 60_000;
  const reason = `opened by ${by.actor} for candidate ${context.candidate.candidateId}`;
  for (const topic of breakers) await deps.topics.trip(topic, cooldownMs, reason, { byHand: true });
  if (breakers.length > 0) result.breakers = breakers;
  if (redrive === null) return null;
  const started = await deps.redrives.startForExecution(redrive, by);
  if (started === null) throw lost(context);
  return started;
}

/** Ends an execution that no redrive carries on; only while it is executing: what became of an unknown one is a person's to say. */
async function finish(
  deps: CandidateDeps,
  { plan, context, startedMs }: ExecutionPlan,
  by: ExecuteOptions,
  status: ExecutionStatus,
  result: Result,
): Promise<Candidate> {
  const { executionId } = context;
  const hold = status === "succeeded" ? plan.hold : undefined;
  const durationMs = Math.max(0, deps.clock.monotonicMs() - startedMs);
  const ended = await change(deps, context.candidate.candidateId, undefined, async ({ candidate }) => {
    const { executionStatus, redriveId } = candidate;
    if (candidate.executionId !== executionId || executionStatus === "unknown") throw lost(context);
    // Another process saw its redrive and ended it.
    if (executionStatus !== "executing") return null;
    // It was started after all, and carries the execution on.
    if (status === "failed" && redriveId !== null) return null;
    const known = { durationMs, confidenceAfter: await confidenceNow(deps, candidate) };
    return { executionId, ...ending(candidate, status, by, result, known, hold) };
  });
  const { candidate, group, changed } = ended;
  if (changed) await deps.hooks.tell("on_execution_complete", { candidate, group, result: status });
  return candidate;
}

/** Nothing was done, and nothing will be. What was begun outside may have happened: there the lease runs out, and a person looks. */
function isCertain(thrown: unknown, touched: boolean): boolean {
  if (!isMakegoodError(thrown)) return !touched;
  return thrown.code !== "wrong_state" && !(touched && thrown.retryable);
}

function lost({ executionId, candidate: { candidateId } }: ActionContext): MakegoodError {
  const text = `The execution ${executionId} of candidate ${candidateId} took too long to begin and is marked unknown: look what happened.`;
  return new MakegoodError("wrong_state", text, { candidateId, executionId });
}

/** An answer of foreign code, as far as it can be written down. */
function bounded(value: unknown): unknown {
  try {
    const text = JSON.stringify(value) as string | undefined;
    return text === undefined || text.length <= RESULT_CHARS_MAX ? (value ?? null) : text.slice(0, RESULT_CHARS_MAX);
  } catch {
    return "an answer that cannot be written as JSON";
  }
}
