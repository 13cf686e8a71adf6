/**
 * An execution that sends failures of other services again, through the topics of ours that their reporters named. All it knows is in the
 * store: any process takes the next step, two at once send each failure once. What becomes of the messages is the outcome.
 */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import type { SentReports } from "../failures/reports-sql.ts";
import { UNKNOWN_MS_MAX } from "../redrive/next-step.ts";
import type { Candidate } from "./candidate.ts";
import { endedBy, resultOf, type Sends } from "./ending.ts";
import type { CandidateDeps } from "./found.ts";

/** So many in one write. */
const PAGE = 200;

/** What comes next: so many to send, to wait, or why it ends. */
export function nextSend(
  { canary, failureShareMax }: Sends,
  counts: SentReports,
  isOld: boolean,
): number | "wait" | "end" | "stop" {
  const { waiting, sent, healed, failed } = counts;
  const known = healed + failed;
  if (sent > 0 && isOld) return "end";
  const inCanary = known + sent <= canary && canary > 0;
  if (inCanary && known + sent < canary && waiting > 0) return Math.min(canary - known - sent, PAGE);
  // The whole canary counts, as in a redrive.
  if (inCanary && sent > 0) return "wait";
  if (waiting > 0) return known > 0 && failed / known > failureShareMax ? "stop" : PAGE;
  return sent > 0 ? "wait" : "end";
}

/** One step; null: it goes on, or is another kind of execution. */
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
