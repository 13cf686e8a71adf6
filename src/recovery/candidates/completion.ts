/** Ends executions, once each: by what became of their messages, never by the answer of a call; as `unknown` where a process died. */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import { each } from "../../platform/job.ts";
import type { SentReports } from "../failures/reports-sql.ts";
import { SYSTEM } from "../provenance.ts";
import { UNKNOWN_MS_MAX } from "../redrive/next-step.ts";
import type { Redrive } from "../redrive/redrive.ts";
import type { Candidate } from "./candidate.ts";
import type { ExecutionStatus } from "./candidate-state.ts";
import { confidenceNow } from "./evaluate-failure.ts";
import { endedBy, ending, reopenIfLeft, resultOf, tookMs } from "./execution-record.ts";
import type { CandidateDeps, Change } from "./found.ts";

const PAGE = 100;
/** Reported failures that are sent again in one write. */
const SENT_MAX = 200;
const EVERY_MS = 5_000;
const WHILE_SENDING_MS = 500;
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
  const ended = status === "done" || status === "stopped" || status === "cancelled";
  // What is resolved is ended; whether it stays so is learned later.
  if (!ended && !(mode === "resolve" && status === "running" && waiting === 0)) return null;
  if (sent + healed + failed === 0) return "skipped";
  if (mode === "resolve") return "succeeded";
  return status === "done" && endedBy(counts) === "succeeded" ? "succeeded" : "failed";
}

/** What comes next: so many to send, to wait, or why it ends. */
export function nextSend(
  { canary, failureShareMax }: { readonly canary: number; readonly failureShareMax: number },
  { waiting, sent, healed, failed }: SentReports,
  isOld: boolean,
): number | "wait" | "end" | "stop" {
  const known = healed + failed;
  if (sent > 0 && isOld) return "end";
  const inCanary = known + sent <= canary && canary > 0;
  if (inCanary && known + sent < canary && waiting > 0) return Math.min(canary - known - sent, SENT_MAX);
  // The whole canary counts, as in a redrive.
  if (inCanary && sent > 0) return "wait";
  if (waiting > 0) return known > 0 && failed / known > failureShareMax ? "stop" : SENT_MAX;
  return sent > 0 ? "wait" : "end";
}

/** All it knows is in the store: any process takes the next step, two at once send each failure once. Null: it goes on, or is no such one. */
export async function resend({ recovery, ids, clock }: CandidateDeps, candidate: Candidate) {
  const { candidateId, groupId, executionId, executedAt, executionStatus } = candidate;
  const { sends } = resultOf(candidate);
  if (executionStatus !== "executing" || executionId === null || !sends || clock.wallMs() < sends.notBeforeMs) return null;
  const sending = { candidateId, groupId, executionId, through: sends.through };
  const isOld = executedAt !== null && clock.wallMs() - executedAt.getTime() > UNKNOWN_MS_MAX;
  let reason: string | null = null;
  for (;;) {
    const counts = await recovery.sentReports(sending);
    const next = reason === null ? nextSend(sends, counts, isOld) : "end";
    if (next === "wait") return null;
    if (next === "stop") reason = `${counts.failed} of the first ${counts.healed + counts.failed} failed: the rest stays open`;
    else if (next === "end") return { status: reason === null ? endedBy(counts) : ("failed" as const), counts, reason };
    else {
      try {
        if ((await recovery.sendReports(sending, next, ids)) === 0) return null;
      } catch (error) {
        if (!isMakegoodError(error) || error.retryable) throw error;
        reason = errorText(error);
      }
    }
  }
}

interface End {
  readonly status: ExecutionStatus;
  readonly result: Readonly<Record<string, unknown>>;
  readonly learned?: Change["learned"];
}

export function createCompletion(deps: CandidateDeps) {
  const { recovery, hooks, events, clock } = deps;
  let nextMs = EVERY_MS;

  async function bySent(candidate: Candidate): Promise<End | null> {
    const resent = await resend(deps, candidate);
    if (resent === null) {
      if (resultOf(candidate).sends) nextMs = WHILE_SENDING_MS;
      return null;
    }
    const { status, counts, reason } = resent;
    return { status, result: { counts, reason }, learned: counts };
  }

  async function byRedrive(candidate: Candidate): Promise<End | null> {
    if (candidate.redriveId === null) return bySent(candidate);
    const redrive = await recovery.redrives.get(candidate.redriveId);
    const { breakers } = resultOf(candidate);
    const came = redrive && endOf(redrive);
    // A breaker that was opened is something that can be rolled back.
    const status = came === "skipped" && breakers ? "failed" : came;
    if (!redrive || status === null) return null;
    const { redriveId, mode, counts, statusReason, createdAt } = redrive;
    // The process that began to watch ends it at once, unless it was killed.
    if (mode === "watch" && clock.wallMs() - createdAt.getTime() < GRACE_MS) return null;
    const so = { mode, redrive_id: redriveId, redrive_status: redrive.status, reason: statusReason, counts };
    return { status, result: { ...so, ...(breakers && { breakers }) } };
  }

  async function byLease(candidate: Candidate): Promise<End | null> {
    if (candidate.redriveId !== null) return null;
    const claimed = resultOf(candidate).reports !== undefined;
    const who = claimed ? "who claimed it did not report in time" : "its process died or stalled";
    const error = `${who} while it executed: look what happened, then say succeeded or failed`;
    return { status: "unknown", result: { error } };
  }

  async function end(candidate: Candidate, { status, result: came, learned }: End): Promise<boolean> {
    const { candidateId, groupId, executionId, version, selectedAction: action } = candidate;
    if (executionId === null) return false;
    const hold = status === "succeeded" ? resultOf(candidate).hold : undefined;
    const known = { durationMs: tookMs(candidate, clock), confidenceAfter: await confidenceNow(deps, candidate) };
    const write = ending(candidate, status, SYSTEM, { action, ...came }, known, hold);
    const written = await recovery.write({ candidateId, executionId, version, learned, ...write });
    // Another process ended it, or wrote to it: the next look sees.
    if (written.kind !== "done") return false;
    const group = await recovery.group(groupId);
    if (group) await hooks.tell("on_execution_complete", { candidate: written.candidate, group, result: status });
    await reopenIfLeft(deps, candidate);
    return true;
  }

  async function sweep(): Promise<void> {
    const since = clock.wallMs() - RECENT_MS;
    for (const executionStatus of ["succeeded", "failed", "skipped"] as const) {
      const { data } = await recovery.candidates({ executionStatus, limit: PAGE });
      for (const each of data) if (each.updatedAt.getTime() > since) await reopenIfLeft(deps, each);
    }
  }

  /** One look at all that executes. Returns how many ended. */
  async function step(): Promise<number> {
    nextMs = EVERY_MS;
    let ended = 0;
    let broken: unknown;
    // An execution that cannot be ended does not stop the others; a store that is away stops them all.
    const endEach = async (candidates: readonly Candidate[], cameTo: (candidate: Candidate) => Promise<End | null>) => {
      for (const candidate of candidates) {
        try {
          const came = await cameTo(candidate);
          if (came && (await end(candidate, came))) ended++;
        } catch (error) {
          if (isMakegoodError(error) && error.retryable) throw error;
          broken ??= error;
        }
      }
    };
    await endEach(await recovery.expiredExecutions(PAGE), byLease);
    let cursor: string | undefined;
    do {
      const page = await recovery.candidates({ executionStatus: "executing", current: false, limit: PAGE, cursor });
      await endEach(page.data, byRedrive);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    if (broken !== undefined) throw broken;
    return ended;
  }

  const moved = (now: () => void) =>
    events.on((event) => event.type === "redrive" && event.candidateId !== null && now(), { seldom: true });
  const run = () => step().then(() => nextMs);

  return {
    step,
    jobs: [
      each("recovery_completion", "ends executions by what became of their messages", EVERY_MS, run, { hear: moved }),
      each("recovery_reopen", "suggests again where an execution ended and left dead letters", SWEEP_MS, sweep),
    ],
  };
}
