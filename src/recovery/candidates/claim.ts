/**
 * Executions that who reported the failures carries out itself: claim a candidate, do it, report what became of it. The claim sets a fence
 * and a lease as an execution of ours does; a report that comes after the lease, or for an execution that was replaced, changes nothing.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Hooks } from "../hooks.ts";
import { line } from "../provenance.ts";
import type { ClaimRequest, OutcomeReport } from "../recovery.ts";
import type { Candidate } from "./candidate.ts";
import { endedBy, ending, startedOf, startText } from "./ending.ts";
import { REPORTS_MAX } from "./execution-plan.ts";
import { actionOf, type CandidateDeps, type Found, refuseUnapproved, untilWritten, writtenOf, wrongState } from "./found.ts";
import { reopenIfLeft } from "./reopen.ts";

export interface ClaimDeps extends CandidateDeps {
  readonly ids: () => string;
  readonly hooks: Hooks;
}

export interface Claims {
  claim(candidateId: number, by: ClaimRequest): Promise<Candidate>;
  reportOutcome(candidateId: number, by: OutcomeReport): Promise<Candidate>;
}

/** Long enough for a batch of another system, short enough that it is missed the same day. */
export const CLAIM_LEASE_MS = { default: 900_000, min: 1_000, max: 24 * 3_600_000 } as const;

export function createClaims(deps: ClaimDeps): Claims {
  const { recovery, hooks, ids } = deps;

  /** Who claimed it needs longer. */
  async function extend({ candidate }: Found, by: ClaimRequest, leaseMs: number): Promise<Candidate | "again"> {
    const { candidateId, version } = candidate;
    const { executionId } = by;
    const mine = candidate.executionId === executionId && startedOf(candidate).reports !== undefined;
    if (!mine) throw replaced(candidate, executionId);
    const written = await recovery.write({ candidateId, executionId, version, leased: true, patch: { leaseMs }, provenance: [] });
    return written.kind === "version_conflict" ? "again" : writtenOf(candidateId, written);
  }

  async function claimOnce(found: Found, by: ClaimRequest): Promise<Candidate | "again"> {
    const { candidate, group } = found;
    const { candidateId, groupId, version, decision } = candidate;
    const { leaseMs = CLAIM_LEASE_MS.default } = by;
    if (by.executionId !== undefined) return extend(found, by, leaseMs);
    const state = decision === "rejected" ? "rejected" : candidate.executionStatus;
    if (state !== "pending") throw wrongState(candidate, `Candidate ${candidateId} is ${state}: it can be claimed only once.`);
    const { actionCode } = actionOf(found);
    const { open, through } = await recovery.openReports(groupId, REPORTS_MAX);
    const against = whyNot(found, open);
    const refused = `Candidate ${candidateId} cannot be claimed: ${against}.`;
    if (against !== null) throw new MakegoodError("action_refused", refused, { candidateId, groupId });
    await refuseUnapproved(recovery, found, by);
    const executionId = ids();
    const said = { candidateId, groupId, action: actionCode, confidenceBefore: candidate.confidence, reason: by.reason ?? null };
    const written = await recovery.write({
      candidateId,
      version,
      groupVersion: group.version,
      patch: {
        ...{ decision: decision === "pending" ? "approved" : undefined, executionStatus: "executing", executionId },
        ...{ executed: true, executedBy: by.actor, leaseMs, executionResult: startText({ reports: open }) },
        ...{ reportsThrough: through, groupVersion: group.version },
      },
      provenance: [line("executing", by, { ...said, details: { execution_id: executionId, reports: open, claimed: true } })],
    });
    if (written.kind === "version_conflict") return "again";
    const claimed = writtenOf(candidateId, written);
    await hooks.tell("on_execution_start", { candidate: claimed, group, executionId });
    return claimed;
  }

  async function reportOnce({ candidate, group }: Found, by: OutcomeReport): Promise<Candidate | "again"> {
    const { candidateId, version, executedAt } = candidate;
    const { executionId, healed, failed } = by;
    if (candidate.executionId !== executionId) throw replaced(candidate, executionId);
    const { reports, ...before } = startedOf(candidate) as { reports?: number; healed?: number; failed?: number };
    // The answer to the first report was lost: the same once more.
    if (candidate.executionStatus !== "executing" && before.healed === healed && before.failed === failed) return candidate;
    if (candidate.executionStatus === "executing" && reports === undefined) {
      const text = `Candidate ${candidateId} is executed here, by ${candidate.executedBy}: nothing is to be reported for it.`;
      throw wrongState(candidate, text);
    }
    if (reports !== undefined && healed + failed > reports) {
      const detail = `must add up to at most ${reports}, the failures that were claimed`;
      throw new MakegoodError("invalid_request", `healed and failed ${detail}.`, { errors: [{ field: "healed", detail }] });
    }
    const status = endedBy(by);
    const result = { action: candidate.selectedAction, reports, healed, failed, note: by.note ?? null };
    const durationMs = executedAt && Math.max(0, deps.clock.wallMs() - executedAt.getTime());
    const end = ending(candidate, status, by, { result, durationMs, confidenceAfter: null });
    const under = { candidateId, executionId, version, leased: true };
    const written = await recovery.write({ ...under, learned: { healed, failed }, ...end });
    if (written.kind === "version_conflict") return "again";
    const after = writtenOf(candidateId, written);
    await hooks.tell("on_execution_complete", { candidate: after, group, result: status });
    await reopenIfLeft(recovery, { ids }, after);
    return after;
  }

  return {
    claim: (candidateId, by) => untilWritten(deps, candidateId, by.version, (found) => claimOnce(found, by)),
    reportOutcome: (candidateId, by) => untilWritten(deps, candidateId, undefined, (found) => reportOnce(found, by)),
  };
}

function whyNot({ group }: Found, open: number): string | null {
  const { groupId, openMessages, heldBy } = group;
  if (heldBy !== null) return `its group is held for ${heldBy}: release it first`;
  if (openMessages > 0) return `group ${groupId} has ${openMessages} open dead letters of ours: execute it here`;
  return open > 0 ? null : `group ${groupId} has no open failure that another service reported`;
}

function replaced(candidate: Candidate, executionId: string | undefined): MakegoodError {
  const { candidateId, executionId: now, executionStatus } = candidate;
  const text = `The execution ${executionId} of candidate ${candidateId} is not its last one (${now ?? "none"}, ${executionStatus}): nothing was changed. Claim the group's current candidate, or report what still fails again.`;
  return wrongState(candidate, text);
}
