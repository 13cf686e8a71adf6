/**
 * What failed while a candidate was executing, or unknown, was counted and opened nothing: once it has ended there is room for
 * the next suggestion. Asked again it does nothing more, so the next process that looks completes what a killed one left.
 */

import type { IngestRules } from "../failures/failure.ts";
import { isResolved } from "../groups/group.ts";
import { line, SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Candidate } from "./candidate.ts";
import { isClosed } from "./candidate-state.ts";

type Reopens = Pick<Records, "group" | "candidateOf" | "reopen">;

export async function reopenIfNewer(recovery: Reopens, rules: IngestRules, ended: Candidate): Promise<boolean> {
  const { groupId, candidateId, executedAt } = ended;
  const group = await recovery.group(groupId);
  if (!group || group.mergedInto !== null || group.openMessages + group.openReports === 0 || isResolved(group)) return false;
  if (executedAt === null || group.lastAt <= executedAt) return false;
  const latest = await recovery.candidateOf(groupId);
  if (latest?.candidateId !== candidateId || !isClosed(latest)) return false;
  const reason = "failures of this group came in while its candidate was executing";
  return (await recovery.reopen(groupId, rules, [line("reopened", SYSTEM, { groupId, reason })])) !== null;
}
