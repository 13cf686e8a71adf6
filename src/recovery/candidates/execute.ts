/**
 * Executes a candidate, once: the claim is one write that needs the version that was read, a pending execution and the approvals
 * that stand, and sets a fence and a lease before any side effect. Of many who try one claims. From its redrive on, any process
 * carries it further; a process that dies before that leaves a lease that runs out, and then only a person ends it.
 */
import { errorText, isMakegoodError, MakegoodError } from "../../message/errors.ts";
import { within } from "../../platform/clock.ts";
import type { ExecuteOptions } from "../recovery.ts";
import type { Redrive } from "../redrive/redrive.ts";
import { NOTIFY_DEFINITION, NOTIFY_TOPIC } from "../topics.ts";
import { refuseUnapproved } from "./approvals.ts";
import { exploredBy } from "./auto-execution.ts";
import { type Candidate, lineOf } from "./candidate.ts";
import type { ExecutionStatus } from "./candidate-state.ts";
import { ending, startText } from "./ending.ts";
import { confidenceNow } from "./evaluate-failure.ts";
import { type ExecutionPlan, planExecution } from "./execution-plan.ts";
import { type CandidateDeps, change, type Found, find, refuseOtherVersion, writtenOf } from "./found.ts";
import { resend } from "./resend.ts";

const HOUR_MS = 3_600_000;
const RESULT_CHARS_MAX = 4_096;

/** It begins by itself; `instead`: another action than the suggestion, to learn about it. */
export interface Automatic {
  readonly instead: string | undefined;
}

export async function execute(
  deps: CandidateDeps,
  candidateId: number,
  options: ExecuteOptions,
  auto?: Automatic,
): Promise<Candidate> {
  const { recovery, hooks, settings } = deps;
  const found = await find(deps, candidateId, auto?.instead);
  refuseOtherVersion(found, options.version);
  const abort = new AbortController();
  const executionId = deps.ids();
  const messagesMax = auto ? settings.autoMessagesMax : Number.POSITIVE_INFINITY;
  const planned = await planExecution(deps, found, options, { executionId, signal: abort.signal, messagesMax });
  await refuseUnapproved(recovery, found, options);
  if (auto) refuseChanged(found);
  const claimed = await claim(deps, found, planned, options, auto);
  await hooks.tell("on_execution_start", { candidate: claimed, group: found.group, executionId });
  if (!planned.sends) return carryOut({ deps, candidateId, executionId, planned, options, abort });
  // From the claim on any process carries it further.
  await resend(deps, claimed).catch(() => undefined);
  return (await find(deps, candidateId)).candidate;
}

/**
 * What runs without a person was evaluated for the group as it was; since then a person may have taken it. The claim needs this
 * version.
 */
function refuseChanged({ candidate, group }: Found): void {
  const { candidateId, groupVersion } = candidate;
  const why = group.heldBy !== null ? `is held for ${group.heldBy}` : group.version !== groupVersion ? "changed" : null;
  if (why === null) return;
  const text = `Candidate ${candidateId} does not run by itself: its group ${why} since it was evaluated. A person can execute it.`;
  throw new MakegoodError("action_refused", text, { candidateId, groupId: group.groupId });
}

async function claim(
  { topics, recovery, settings }: CandidateDeps,
  { candidate, group, suggested }: Found,
  planned: ExecutionPlan,
  options: ExecuteOptions,
  auto: Automatic | undefined,
): Promise<Candidate> {
  const { candidateId, version, selectedAction } = candidate;
  const { messages, breakers, sends, plan } = planned;
  const { executionId, blastRadius } = planned.context;
  if (messages.some(({ topic }) => topic === NOTIFY_TOPIC) && (await topics.get(NOTIFY_TOPIC)) === null) {
    await topics.put(NOTIFY_DEFINITION, "api");
  }
  const details = {
    execution_id: executionId,
    messages: blastRadius.messages,
    approvals: candidate.approvals.length,
    ...(auto?.instead && { explored_instead_of: suggested }),
  };
  const executionsMax = settings.autoExecutionsPerHour;
  const written = await recovery.write({
    candidateId,
    version,
    groupVersion: group.version,
    budget: auto && { executedBy: options.actor, windowMs: HOUR_MS, executionsMax },
    patch: {
      // Without a policy that asks for approvals, executing it is the decision.
      decision: "approved",
      executionStatus: "executing",
      executionId,
      executedBy: options.actor,
      executed: true,
      // What sends reported failures again, any process carries on.
      leaseMs: sends ? null : settings.executionLeaseMs,
      executionResult: startText({ hold: plan.hold, sends, breakers: breakers.length > 0 ? breakers : undefined }),
      groupVersion: group.version,
      reportsThrough: planned.reportsThrough,
      ...(auto?.instead && { selectedAction, evaluation: exploredBy(candidate, suggested) }),
    },
    provenance: [lineOf(candidate, "executing", options, { confidenceBefore: candidate.confidence, details })],
    messages,
  });
  return writtenOf(candidateId, written);
}

interface Execution {
  readonly deps: CandidateDeps;
  readonly candidateId: number;
  readonly executionId: string;
  readonly planned: ExecutionPlan;
  readonly options: ExecuteOptions;
  readonly abort: AbortController;
}

/** What is written into the execution's result as it goes. */
type Result = Record<string, unknown>;

async function carryOut(execution: Execution): Promise<Candidate> {
  const { deps, candidateId, planned } = execution;
  const { action, redrive: asked, messages, plan, breakers } = planned;
  const mode = asked?.mode ?? null;
  const result: Result = { action: action.actionCode, mode, messages: messages.map(({ id }) => id) };
  const outside = plan.run !== undefined || breakers.length > 0;
  // What went out with the claim is done.
  let touched = messages.length > 0;
  let redrive: Redrive | null;
  let ended: ExecutionStatus | null;
  try {
    if (outside) await renew(execution);
    touched ||= outside;
    ended = await run(execution, result);
    redrive = ended === null ? await begin(execution, result) : null;
  } catch (thrown) {
    if (!isCertain(thrown, touched)) throw thrown;
    result.error = errorText(thrown).slice(0, RESULT_CHARS_MAX);
    // If this cannot be written either, the first error is thrown, and the lease runs out.
    return finish(execution, "failed", result).catch(() => {
      throw thrown;
    });
  }
  if (ended !== null) return finish(execution, ended, result);
  if (redrive !== null) result.redrive_id = redrive.redriveId;
  // Watching goes on for as long as it takes; what was to be done is done.
  if (redrive === null || mode === "watch") return finish(execution, "succeeded", result);
  return (await find(deps, candidateId)).candidate;
}

/** Hooks may take long: a side effect outside the store begins only with a whole lease ahead of it. */
async function renew({ deps, candidateId, executionId }: Execution): Promise<void> {
  const patch = { leaseMs: deps.settings.executionLeaseMs };
  const written = await deps.recovery.write({ candidateId, executionId, leased: true, patch, provenance: [] });
  if (written.kind !== "done") throw lost(candidateId, executionId);
}

/** Code of a registered action. Past its time it may still be running: then its outcome is unknown. */
async function run({ deps, planned, abort }: Execution, result: Result): Promise<ExecutionStatus | null> {
  const { plan, context } = planned;
  if (plan.run === undefined) return null;
  const timeoutMs = Math.min(deps.settings.runTimeoutMs, deps.settings.executionLeaseMs / 2);
  try {
    const running = Promise.resolve(plan.run(context)).then((value) => ({ value }));
    const ran = await within(deps.clock, running, timeoutMs);
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

async function begin({ deps, candidateId, executionId, planned, options }: Execution, result: Result): Promise<Redrive | null> {
  const { action, breakers, redrive } = planned;
  const cooldownMs = typeof action.template.cooldown_ms === "number" ? action.template.cooldown_ms : 60_000;
  for (const topic of breakers) {
    await deps.topics.trip(topic, cooldownMs, `opened by ${options.actor} for candidate ${candidateId}`, { byHand: true });
  }
  if (breakers.length > 0) result.breakers = breakers;
  if (redrive === null) return null;
  const started = await deps.redrives.startForExecution(redrive, options);
  if (started === null) throw lost(candidateId, executionId);
  return started;
}

/** Ends an execution that no redrive carries on; only while it is executing: what became of an unknown one is a person's to say. */
async function finish(execution: Execution, status: ExecutionStatus, result: Result): Promise<Candidate> {
  const { deps, candidateId, executionId, planned, options } = execution;
  const hold = status === "succeeded" ? planned.plan.hold : undefined;
  const durationMs = Math.max(0, deps.clock.monotonicMs() - planned.startedMs);
  const { candidate, group, changed } = await change(deps, candidateId, undefined, async ({ candidate: now }) => {
    if (now.executionId !== executionId || now.executionStatus === "unknown") throw lost(candidateId, executionId);
    // Another process saw its redrive and ended it.
    if (now.executionStatus !== "executing") return null;
    // It was started after all, and carries the execution on.
    if (status === "failed" && now.redriveId !== null) return null;
    const confidenceAfter = await confidenceNow(deps, now);
    return { executionId, ...ending(now, status, options, { result, hold, durationMs, confidenceAfter }) };
  });
  if (changed) await deps.hooks.tell("on_execution_complete", { candidate, group, result: status });
  return candidate;
}

/**
 * Whether nothing was done, and nothing will be: a redrive that was asked for and not answered needs the execution that is ended here. What
 * was begun outside may have happened or not: there the lease runs out, and a person looks.
 */
function isCertain(thrown: unknown, touched: boolean): boolean {
  if (!isMakegoodError(thrown)) return !touched;
  return thrown.code !== "wrong_state" && !(touched && thrown.retryable);
}

function lost(candidateId: number, executionId: string): MakegoodError {
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
