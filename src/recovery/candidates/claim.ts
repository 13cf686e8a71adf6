/** Executions that who reported the failures carries out itself: claimed under a fence and a lease, and its outcome reported under both. */
import { MakegoodError } from "../../message/errors.ts";
import type { ClaimRequest, OutcomeReport } from "../recovery.ts";
import type { Candidate } from "./candidate.ts";
import { REPORTS_MAX } from "./execution-plan.ts";
import { endedBy, ending, reopenIfLeft, resultOf, starting, tookMs } from "./execution-record.ts";
import { actionOf, type CandidateDeps, type Change, change, type Found, refuseUnapproved, wrongState } from "./found.ts";

/** Long enough for a batch of another system, short enough that it is missed the same day. */
export const CLAIM_LEASE_MS = { default: 900_000, min: 1_000, max: 24 * 3_600_000 } as const;

export async function claim(deps: CandidateDeps, candidateId: number, by: ClaimRequest): Promise<Candidate> {
  const { executionId, leaseMs = CLAIM_LEASE_MS.default } = by;
  const { candidate, group } = await change(deps, candidateId, by.version, (found) =>
    executionId === undefined ? claiming(deps, found, by, leaseMs) : extension(found, executionId, leaseMs),
  );
  if (executionId === undefined) {
    await deps.hooks.tell("on_execution_start", { candidate, group, executionId: candidate.executionId as string });
  }
  return candidate;
}

async function claiming(deps: CandidateDeps, found: Found, by: ClaimRequest, leaseMs: number): Promise<Change> {
  const { recovery, ids } = deps;
  const { candidate } = found;
  const { candidateId, groupId, decision } = candidate;
  const state = decision === "rejected" ? "rejected" : candidate.executionStatus;
  if (state !== "pending") throw wrongState(candidate, `Candidate ${candidateId} is ${state}: it can be claimed only once.`);
  actionOf(found);
  const { open: reports, through: reportsThrough } = await recovery.openReports(groupId, REPORTS_MAX);
  const against = whyNot(found, reports);
  const refused = `Candidate ${candidateId} cannot be claimed: ${against}.`;
  if (against !== null) throw new MakegoodError("action_refused", refused, { candidateId, groupId });
  await refuseUnapproved(recovery, found, by);
  return starting(found, by, { executionId: ids(), leaseMs, reportsThrough }, { reports }, { reports, claimed: true });
}

function extension({ candidate }: Found, executionId: string, leaseMs: number): Change {
  const mine = candidate.executionId === executionId && resultOf(candidate).reports !== undefined;
  if (!mine) throw replaced(candidate, executionId);
  return { executionId, leased: true, patch: { leaseMs }, provenance: [] };
}

export async function reportOutcome(deps: CandidateDeps, candidateId: number, by: OutcomeReport): Promise<Candidate> {
  const status = endedBy(by);
  const { candidate, group, changed } = await change(deps, candidateId, undefined, (found) => outcome(deps, found, by));
  if (!changed) return candidate;
  await deps.hooks.tell("on_execution_complete", { candidate, group, result: status });
  await reopenIfLeft(deps, candidate);
  return candidate;
}

function outcome({ clock }: CandidateDeps, { candidate }: Found, by: OutcomeReport): Change | null {
  const { candidateId, executionStatus, executedBy, selectedAction: action } = candidate;
  const { executionId, healed, failed, note = null } = by;
  if (candidate.executionId !== executionId) throw replaced(candidate, executionId);
  const { reports, ...before } = resultOf(candidate);
  // The answer to the first report was lost: the same once more.
  if (executionStatus !== "executing" && before.healed === healed && before.failed === failed) return null;
  if (executionStatus === "executing" && reports === undefined) {
    const text = `Candidate ${candidateId} is executed here, by ${executedBy}: nothing is to be reported for it.`;
    throw wrongState(candidate, text);
  }
  if (reports !== undefined && healed + failed > reports) {
    const detail = `must add up to at most ${reports}, the failures that were claimed`;
    throw new MakegoodError("invalid_request", `healed and failed ${detail}.`, { errors: [{ field: "healed", detail }] });
  }
  const result = { action, reports, healed, failed, note };
  const end = ending(candidate, endedBy(by), by, result, { durationMs: tookMs(candidate, clock) });
  return { executionId, leased: true, learned: { healed, failed }, ...end };
}

function whyNot({ group }: Found, open: number): string | null {
  const { groupId, openMessages, heldBy } = group;
  if (heldBy !== null) return `its group is held for ${heldBy}: release it first`;
  if (openMessages > 0) return `group ${groupId} has ${openMessages} open dead letters of ours: execute it here`;
  return open > 0 ? null : `group ${groupId} has no open failure that another service reported`;
}

function replaced(candidate: Candidate, executionId: string): MakegoodError {
  const { candidateId, executionId: now, executionStatus } = candidate;
  const text = `The execution ${executionId} of candidate ${candidateId} is not its last one (${now ?? "none"}, ${executionStatus}): nothing was changed. Claim the group's current candidate, or report what still fails again.`;
  return wrongState(candidate, text);
}
