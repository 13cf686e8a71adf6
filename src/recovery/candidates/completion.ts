/**
 * Ends executions: those whose redrive has ended, by what became of its messages (never by the answer of a call), and those whose
 * process died before a redrive carried them on, as `unknown`. Looks now and then and when an event says that a redrive moved;
 * two processes that look at once end an execution once.
 */
import { isMakegoodError } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import type { Clock } from "../../platform/clock.ts";
import type { MaintenanceJob } from "../../platform/job.ts";
import type { Hooks } from "../hooks.ts";
import { SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Redrive } from "../redrive/redrive.ts";
import type { Candidate, CandidateWrite, ExecutionStatus } from "./candidate.ts";
import type { ConfidenceNow } from "./confidence-now.ts";
import { breakersOf, endedBy, ending, plannedHold, startedOf } from "./ending.ts";
import { reopenIfLeft } from "./reopen.ts";
import type { Resend } from "./resend.ts";

export interface CompletionDeps {
  readonly recovery: Records;
  readonly resend: Resend;
  readonly confidenceNow: ConfidenceNow;
  readonly ids: () => string;
  readonly hooks: Hooks;
  readonly events: Events;
  readonly clock: Clock;
}

const PAGE = 100;
const EVERY_MS = 5_000;
/** While reported failures are sent again. */
const SOON_MS = 500;
/** Longer than a process that lives takes from the start of a redrive to its next write. */
const GRACE_MS = 30_000;
/** Once in so long it looks whether a process was killed between the end of an execution and what follows from it. */
const SWEEP_MS = 60_000;
const RECENT_MS = 10 * SWEEP_MS;

/** What an execution came to, by its redrive; null: it goes on. */
export function endOf({ mode, status, counts }: Pick<Redrive, "mode" | "status" | "counts">): ExecutionStatus | null {
  // What was to be done is done; watching goes on for as long as it takes.
  if (mode === "watch") return "succeeded";
  const { sent, healed, failed, waiting } = counts;
  const touched = sent + healed + failed;
  const ended = status === "done" || status === "stopped" || status === "cancelled";
  // What is resolved is ended; whether it stays so is learned later.
  if (!ended && !(mode === "resolve" && status === "running" && waiting === 0)) return null;
  if (touched === 0) return "skipped";
  if (mode === "resolve") return "succeeded";
  return status === "done" && endedBy(counts) === "succeeded" ? "succeeded" : "failed";
}

export function createCompletion({ recovery, resend, confidenceNow, ids, hooks, events, clock }: CompletionDeps) {
  let nextMs = EVERY_MS;

  async function end(
    candidate: Candidate,
    status: ExecutionStatus,
    result: Record<string, unknown>,
    learned?: CandidateWrite["learned"],
  ): Promise<boolean> {
    const { candidateId, groupId, executionId, version, executedAt } = candidate;
    if (executionId === null) return false;
    const hold = status === "succeeded" ? plannedHold(candidate) : undefined;
    const durationMs = executedAt && Math.max(0, clock.wallMs() - executedAt.getTime());
    const confidenceAfter = await confidenceNow(candidate);
    const write = ending(candidate, status, SYSTEM, { result, hold, durationMs, confidenceAfter });
    const written = await recovery.write({ candidateId, executionId, version, learned, ...write });
    // Another process ended it, or wrote to it: the next look sees.
    if (written.kind !== "done") return false;
    const group = await recovery.group(groupId);
    if (group) await hooks.tell("on_execution_complete", { candidate: written.candidate, group, result: status });
    return true;
  }

  /** Reported failures that were sent again, by what became of the messages. */
  async function endBySent(candidate: Candidate): Promise<boolean> {
    const resent = await resend(candidate);
    if (resent === null && startedOf(candidate).sends) nextMs = SOON_MS;
    if (resent === null) return false;
    const { status, counts, reason } = resent;
    const ended = await end(candidate, status, { action: candidate.selectedAction, counts, reason }, counts);
    if (ended) await reopenIfLeft(recovery, { ids }, candidate);
    return ended;
  }

  async function endByRedrive(candidate: Candidate): Promise<boolean> {
    if (candidate.redriveId === null) return endBySent(candidate);
    const redrive = await recovery.redrives.get(candidate.redriveId);
    const breakers = breakersOf(candidate);
    const came = redrive && endOf(redrive);
    // A breaker that was opened is something that can be rolled back.
    const status = came === "skipped" && breakers.length > 0 ? "failed" : came;
    if (!redrive || status === null) return false;
    // The process that began to watch ends it at once, unless it was killed.
    if (redrive.mode === "watch" && clock.wallMs() - redrive.createdAt.getTime() < GRACE_MS) return false;
    const { redriveId: id, mode, counts, statusReason } = redrive;
    const result = {
      action: candidate.selectedAction,
      mode,
      redrive_id: id,
      redrive_status: redrive.status,
      reason: statusReason,
      counts,
      ...(breakers.length > 0 && { breakers }),
    };
    const ended = await end(candidate, status, result);
    if (ended) await reopenIfLeft(recovery, { ids }, candidate);
    return ended;
  }

  async function endUnknown(candidate: Candidate): Promise<boolean> {
    if (candidate.redriveId !== null) return false;
    const who =
      startedOf(candidate).reports === undefined ? "its process died or stalled" : "who claimed it did not report in time";
    const error = `${who} while it executed: look what happened, then say succeeded or failed`;
    return end(candidate, "unknown", { action: candidate.selectedAction, error });
  }

  async function sweep(): Promise<void> {
    const since = clock.wallMs() - RECENT_MS;
    for (const executionStatus of ["succeeded", "failed", "skipped"] as const) {
      const { data } = await recovery.candidates({ executionStatus, limit: PAGE });
      for (const each of data) if (each.updatedAt.getTime() > since) await reopenIfLeft(recovery, { ids }, each);
    }
  }

  /** One look at all that executes. Returns how many ended. */
  async function step(): Promise<number> {
    nextMs = EVERY_MS;
    let ended = 0;
    let broken: unknown;
    // An execution that cannot be ended does not stop the others; a store that is away stops them all.
    const tryOne = async (candidate: Candidate, one: (candidate: Candidate) => Promise<boolean>): Promise<void> => {
      try {
        if (await one(candidate)) ended++;
      } catch (error) {
        if (isMakegoodError(error) && error.retryable) throw error;
        broken ??= error;
      }
    };
    for (const candidate of await recovery.expiredExecutions(PAGE)) await tryOne(candidate, endUnknown);
    let cursor: string | undefined;
    do {
      const page = await recovery.candidates({ executionStatus: "executing", current: false, limit: PAGE, cursor });
      for (const candidate of page.data) await tryOne(candidate, endByRedrive);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    if (broken !== undefined) throw broken;
    return ended;
  }

  const moved = (now: () => void) =>
    events.on((event) => event.type === "redrive" && event.candidateId !== null && now(), { seldom: true });

  return {
    step,
    jobs: [
      {
        name: "recovery_completion",
        everyMs: EVERY_MS,
        where: "each",
        hear: moved,
        run: async () => {
          await step();
          return nextMs;
        },
      },
      { name: "recovery_reopen", everyMs: SWEEP_MS, where: "each", run: sweep },
    ] satisfies MaintenanceJob[],
  };
}
