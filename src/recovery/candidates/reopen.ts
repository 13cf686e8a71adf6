/**
 * An execution that has ended makes room for the next suggestion where it left dead letters open: failures that came in meanwhile were
 * counted and opened nothing, and what a person cancelled was not sent. Asked again it does nothing more, so the next process that looks
 * completes what a killed one left.
 */

import { isResolved } from "../groups/group.ts";
import { line, SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Candidate } from "./candidate.ts";
import { isClosed } from "./candidate-state.ts";
import { wasCancelled } from "./ending.ts";
import type { AskSettings } from "./when.ts";

type Reopens = Pick<Records, "group" | "candidateOf" | "reopen">;

/** `why` there must be a suggestion again; null: only where failures came in while it was executing, or it was cancelled. */
export async function reopenIfLeft(
  recovery: Reopens,
  settings: AskSettings,
  { groupId, candidateId, executedAt }: Candidate,
  why: string | null = null,
): Promise<boolean> {
  const group = await recovery.group(groupId);
  if (!group || group.mergedInto !== null || group.openMessages + group.openReports === 0 || isResolved(group)) return false;
  const latest = await recovery.candidateOf(groupId);
  if (latest?.candidateId !== candidateId || !isClosed(latest)) return false;
  const newer = executedAt !== null && group.lastAt > executedAt;
  const meanwhile = newer ? "failures of this group came in while its candidate was executing" : null;
  const reason = why ?? meanwhile ?? (wasCancelled(latest) ? "its execution was cancelled, and dead letters are left" : null);
  if (reason === null) return false;
  return (await recovery.reopen(groupId, settings, [line("reopened", SYSTEM, { groupId, reason })])) !== null;
}
