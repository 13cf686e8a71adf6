/**
 * Executes a candidate, once: the claim is one write that needs the version that was read, a pending execution and the approvals
 * that stand, and sets a fence and a lease before any side effect. Of many who try one claims. From its redrive on, any process
 * carries it further; a process that dies before that leaves a lease that runs out, and then only a person ends it.
 */
import { errorText, isMakegoodError, MakegoodError } from "../../message/errors.ts";
import { within } from "../../platform/clock.ts";
import type { TopicStore } from "../../store/topics.ts";
import type { Hooks } from "../hooks.ts";
import { line } from "../provenance.ts";
import type { Actor, ExecuteOptions } from "../recovery.ts";
import type { Redrive } from "../redrive/redrive.ts";
import type { Redrives } from "../redrive/redrives.ts";
import type { RecoverySettings } from "../settings.ts";
import { NOTIFY_DEFINITION, NOTIFY_TOPIC } from "../topics.ts";
import type { Candidate, ExecutionStatus } from "./candidate.ts";
import { exploredBy } from "./chosen.ts";
import type { ConfidenceNow } from "./confidence-now.ts";
import { ending, startText } from "./ending.ts";
import { type ExecutionPlan, type PlanDeps, planExecution } from "./execution-plan.ts";
import { type Found, find, refuseUnapproved, untilWritten, writtenOf } from "./found.ts";

export interface ExecuteDeps extends PlanDeps {
  readonly topics: Pick<TopicStore, "get" | "put" | "trip">;
  readonly redrives: Pick<Redrives, "startForExecution">;
  /** Sends the first of the reported failures again. */
  readonly resend: (candidate: Candidate) => Promise<unknown>;
  readonly hooks: Hooks;
  readonly confidenceNow: ConfidenceNow;
  readonly settings: RecoverySettings;
}

/** For executions that begin by themselves. */
export interface Budget {
  readonly executionsPerHour: number;
  readonly messagesMax: number;
  /** Another action than the suggestion, to learn about it. */
  readonly instead?: string | undefined;
}

export type Execute = (candidateId: number, options: ExecuteOptions, budget?: Budget) => Promise<Candidate>;

const HOUR_MS = 3_600_000;
const RESULT_CHARS_MAX = 4_096;

/** What is written into the execution's result as it goes. */
type Result = Record<string, unknown>;

export function createExecute(deps: ExecuteDeps): Execute {
  const { recovery, hooks, settings, clock } = deps;

  async function claim(found: Found, planned: ExecutionPlan, options: ExecuteOptions, budget?: Budget): Promise<Candidate> {
    const { candidate, group } = found;
    const { candidateId, groupId, version } = candidate;
    const { action, context, messages } = planned;
    const { executionId, blastRadius } = context;
    const {
      breakers,
      plan: { hold },
    } = planned;
    if (messages.some(({ topic }) => topic === NOTIFY_TOPIC) && (await deps.topics.get(NOTIFY_TOPIC)) === null) {
      await deps.topics.put(NOTIFY_DEFINITION, "api");
    }
    const details = {
      execution_id: executionId,
      messages: blastRadius.messages,
      approvals: candidate.approvals.length,
      ...(budget?.instead && { explored_instead_of: found.suggested }),
    };
    const reason = options.reason ?? null;
    const explored = budget?.instead && { selectedAction: action.actionCode, ...exploredBy(candidate, found.suggested) };
    const written = await recovery.write({
      candidateId,
      version,
      groupVersion: group.version,
      budget: budget && { executedBy: options.actor, windowMs: HOUR_MS, executionsMax: budget.executionsPerHour },
      patch: {
        // Without a policy that asks for approvals, executing it is the decision.
        decision: candidate.decision === "pending" ? "approved" : undefined,
        executionStatus: "executing",
        executionId,
        executedBy: options.actor,
        executed: true,
        // What sends reported failures again, any process carries on.
        leaseMs: planned.sends ? null : settings.executionLeaseMs,
        executionResult: startText({ hold, sends: planned.sends, breakers: breakers.length > 0 ? breakers : undefined }),
        groupVersion: group.version,
        reportsThrough: planned.reportsThrough,
        ...explored,
      },
      provenance: [
        line("executing", options, {
          candidateId,
          groupId,
          action: action.actionCode,
          confidenceBefore: candidate.confidence,
          reason,
          details,
        }),
      ],
      messages,
    });
    return writtenOf(candidateId, written);
  }

  /** Hooks may take long: a side effect outside the store begins only with a whole lease ahead of it. */
  async function renew(candidateId: number, executionId: string): Promise<void> {
    const patch = { leaseMs: settings.executionLeaseMs };
    const before = (await find(deps, candidateId)).candidate;
    const mine = before.executionStatus === "executing" && before.executionId === executionId;
    const written = mine ? await recovery.write({ candidateId, executionId, patch, provenance: [] }) : null;
    if (written?.kind === "done" && written.candidate.executionStatus === "executing") return;
    throw lost(candidateId, executionId);
  }

  /** Code of a registered action. Past its time it may still be running: then its outcome is unknown. */
  async function run({ plan, context }: ExecutionPlan, result: Result, abort: AbortController): Promise<ExecutionStatus | null> {
    if (plan.run === undefined) return null;
    const timeoutMs = Math.min(settings.runTimeoutMs, settings.executionLeaseMs / 2);
    try {
      const ran = await within(
        clock,
        Promise.resolve(plan.run(context)).then((value) => ({ value })),
        timeoutMs,
      );
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

  async function begin(found: Found, planned: ExecutionPlan, options: ExecuteOptions, result: Result): Promise<Redrive | null> {
    const { action, plan, mode, context, redrive } = planned;
    const { candidateId, groupId } = found.candidate;
    const cooldownMs = typeof action.template.cooldown_ms === "number" ? action.template.cooldown_ms : 60_000;
    for (const topic of planned.breakers) {
      await deps.topics.trip(topic, cooldownMs, `opened by ${options.actor} for candidate ${candidateId}`, { byHand: true });
    }
    if (planned.breakers.length > 0) result.breakers = planned.breakers;
    if (mode === null) return null;
    const reason = plan.reason?.trim() || options.reason || `candidate ${candidateId}: ${action.actionCode}`;
    const { executionId } = context;
    const asked = {
      candidateId,
      executionId,
      groupId,
      action: action.actionCode,
      mode,
      carrier: plan.carrier,
      reason,
      repair: options.afterRepair,
      plan: redrive,
    };
    const started = await deps.redrives.startForExecution(asked, options);
    if (started !== null) return started;
    throw lost(candidateId, executionId);
  }

  /** Ends an execution that no redrive carries on; only while it is executing: what became of an unknown one is a person's to say. */
  async function finish(
    found: Found,
    planned: ExecutionPlan,
    by: Actor,
    status: ExecutionStatus,
    result: Result,
  ): Promise<Candidate> {
    const { candidateId } = found.candidate;
    const { executionId } = planned.context;
    const hold = status === "succeeded" ? planned.plan.hold : undefined;
    const durationMs = Math.max(0, clock.monotonicMs() - planned.startedMs);
    return untilWritten(deps, candidateId, undefined, async ({ candidate }) => {
      if (candidate.executionId !== executionId || candidate.executionStatus === "unknown") throw lost(candidateId, executionId);
      // Another process saw its redrive and ended it.
      if (candidate.executionStatus !== "executing") return candidate;
      // It was started after all, and carries the execution on.
      if (status === "failed" && candidate.redriveId !== null) return candidate;
      const { version } = candidate;
      const confidenceAfter = await deps.confidenceNow(candidate);
      const written = await recovery.write({
        candidateId,
        executionId,
        version,
        ...ending(candidate, status, by, { result, hold, durationMs, confidenceAfter }),
      });
      if (written.kind === "version_conflict") return "again";
      const after = writtenOf(candidateId, written);
      await hooks.tell("on_execution_complete", { candidate: after, group: found.group, result: status });
      return after;
    });
  }

  async function carryOut(
    found: Found,
    planned: ExecutionPlan,
    options: ExecuteOptions,
    abort: AbortController,
  ): Promise<Candidate> {
    const { mode, messages, action } = planned;
    const result: Result = { action: action.actionCode, mode, messages: messages.map(({ id }) => id) };
    const outside = planned.plan.run !== undefined || planned.breakers.length > 0;
    // What went out with the claim is done.
    let touched = messages.length > 0;
    let redrive: Redrive | null;
    let ended: ExecutionStatus | null;
    try {
      if (outside) await renew(found.candidate.candidateId, planned.context.executionId);
      touched ||= outside;
      ended = await run(planned, result, abort);
      redrive = ended === null ? await begin(found, planned, options, result) : null;
    } catch (thrown) {
      if (!isCertain(thrown, touched)) throw thrown;
      result.error = errorText(thrown).slice(0, RESULT_CHARS_MAX);
      // If this cannot be written either, the first error is thrown, and the lease runs out.
      return finish(found, planned, options, "failed", result).catch(() => {
        throw thrown;
      });
    }
    if (ended !== null) return finish(found, planned, options, ended, result);
    if (redrive !== null) result.redrive_id = redrive.redriveId;
    // Watching goes on for as long as it takes; what was to be done is done.
    if (redrive === null || mode === "watch") return finish(found, planned, options, "succeeded", result);
    return (await find(deps, found.candidate.candidateId)).candidate;
  }

  return async (candidateId, options, budget) => {
    const found = await find(deps, candidateId, budget?.instead);
    const { candidate } = found;
    if (options.version !== undefined && options.version !== candidate.version) {
      return writtenOf(candidateId, { kind: "version_conflict", candidate });
    }
    const abort = new AbortController();
    const executionId = deps.ids();
    const fence = { executionId, signal: abort.signal, messagesMax: budget?.messagesMax };
    const planned = await planExecution(deps, found, options, fence);
    await refuseUnapproved(recovery, found, options);
    if (budget) refuseChanged(found);
    const claimed = await claim(found, planned, options, budget);
    await hooks.tell("on_execution_start", { candidate: claimed, group: found.group, executionId });
    if (planned.sends) {
      // From the claim on any process carries it further.
      await deps.resend(claimed).catch(() => undefined);
      return (await find(deps, candidateId)).candidate;
    }
    return carryOut({ ...found, candidate: claimed }, planned, options, abort);
  };
}

/**
 * Whether nothing was done, and nothing will be: a redrive that was asked for and not answered needs the execution that is ended here. What
 * was begun outside may have happened or not: there the lease runs out, and a person looks.
 */
function isCertain(thrown: unknown, touched: boolean): boolean {
  if (!isMakegoodError(thrown)) return !touched;
  return thrown.code !== "wrong_state" && !(touched && thrown.retryable);
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
