/** How an execution begins and ends on record, what is kept with it, and the room that it makes for the next suggestion. */
import type { Clock } from "../../platform/clock.ts";
import type { ActionPlan } from "../actions/action.ts";
import { isResolved } from "../groups/group.ts";
import { line, type NewProvenance, SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Actor, Versioned } from "../recovery.ts";
import { type Candidate, lineOf } from "./candidate.ts";
import { type ExecutionStatus, isClosed } from "./candidate-state.ts";
import type { ExecutionPlan } from "./execution-plan.ts";
import type { Change, Found } from "./found.ts";

type Details = Readonly<Record<string, unknown>>;

/** Kept with the claim, so that another process can carry on or end the execution of one that was killed; in the end its result. */
interface Kept {
  readonly hold?: ActionPlan["hold"];
  /** The topics whose breakers this execution opened, or was about to open. */
  readonly breakers?: readonly string[] | undefined;
  readonly sends?: ExecutionPlan["sends"];
  /** Who reported so many failures carries it out. */
  readonly reports?: number | undefined;
  readonly redrive_status?: string;
  readonly healed?: number;
  readonly failed?: number;
}

export const resultOf = ({ executionResult }: Candidate) => JSON.parse(executionResult ?? "{}") as Kept;

/** A person ended its redrive: what comes next on this group is a person's too. */
export const wasCancelled = (candidate: Candidate): boolean => resultOf(candidate).redrive_status === "cancelled";

/** Whether it did more good than harm; what touched nothing did neither. */
export function endedBy({ healed, failed }: { readonly healed: number; readonly failed: number }): ExecutionStatus {
  if (healed + failed === 0) return "skipped";
  return healed > 0 && healed >= failed ? "succeeded" : "failed";
}

export function starting(
  { candidate, group }: Found,
  by: Versioned,
  begun: Pick<Change["patch"], "leaseMs" | "reportsThrough"> & { readonly executionId: string },
  started: Kept,
  details: Details,
): Change {
  const says = Object.values(started).some((each) => each !== undefined);
  const said = { confidenceBefore: candidate.confidence, details: { execution_id: begun.executionId, ...details } };
  return {
    groupVersion: group.version,
    patch: {
      ...begun,
      // Without a policy that asks for approvals, executing it is the decision.
      decision: "approved",
      executionStatus: "executing",
      executed: true,
      executedBy: by.actor,
      executionResult: says ? JSON.stringify({ status: "executing", ...started }) : null,
      groupVersion: group.version,
    },
    provenance: [lineOf(candidate, "executing", by, said)],
  };
}

/** `confidenceAfter`: how sure the action is with what this execution taught. */
export function ending(
  candidate: Candidate,
  status: ExecutionStatus,
  by: Actor,
  result: Details,
  known: Pick<NewProvenance, "durationMs" | "confidenceAfter">,
  hold?: ActionPlan["hold"],
): Change {
  const { candidateId, groupId, redriveId, selectedAction: action, confidence: confidenceBefore } = candidate;
  const details = { ...result, ...(hold && { held_by: hold.owner }) };
  const event = status === "unknown" ? "execution_unknown" : "executed";
  return {
    patch: {
      executionStatus: status,
      leaseMs: null,
      executionResult: JSON.stringify({ status, ...details }),
      ...(hold && { heldBy: hold.owner, owner: hold.owner, note: hold.note }),
    },
    provenance: [line(event, by, { candidateId, groupId, redriveId, action, confidenceBefore, ...known, details })],
  };
}

export const tookMs = ({ executedAt }: Candidate, clock: Clock): number | null =>
  executedAt && Math.max(0, clock.wallMs() - executedAt.getTime());

/** A suggestion again, where dead letters are left that it was not about. Asked twice it is done once: any process may, after a killed one. */
export async function reopenIfLeft(
  { recovery, ids }: { readonly recovery: Pick<Records, "group" | "candidateOf" | "reopen">; readonly ids: () => string },
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
  return (await recovery.reopen(groupId, { ids }, [line("reopened", SYSTEM, { groupId, reason })])) !== null;
}
