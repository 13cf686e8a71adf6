/**
 * How an execution ends on record: its status, what came of it, how long it took, and the hold that was planned with it. The hold
 * and the breakers are kept with the claim, so that another process can end the execution of one that was killed.
 */

import type { ActionPlan } from "../actions/action.ts";
import type { NewProvenance } from "../provenance.ts";
import { line } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import type { Candidate, CandidatePatch, ExecutionStatus } from "./candidate.ts";

type Hold = NonNullable<ActionPlan["hold"]>;

export interface Ending {
  readonly result: Readonly<Record<string, unknown>>;
  readonly hold?: Hold | undefined;
  readonly durationMs: number | null;
  /** How sure the action is with what this execution taught. */
  readonly confidenceAfter: number | null;
}

/** What the claim writes as the result while there is none yet. */
export function startText({ hold }: Pick<ActionPlan, "hold">, breakers: readonly string[]): string | null {
  if (hold === undefined && breakers.length === 0) return null;
  return JSON.stringify({ status: "executing", hold, ...(breakers.length > 0 && { breakers }) });
}

/** The topics whose breakers this execution opened, or was about to open. */
export function breakersOf({ executionResult }: Pick<Candidate, "executionResult">): readonly string[] {
  return executionResult === null ? [] : ((JSON.parse(executionResult) as { breakers?: string[] }).breakers ?? []);
}

/** A person ended its redrive: what comes next on this group is a person's too. */
export function wasCancelled({ executionResult }: Pick<Candidate, "executionResult">): boolean {
  return executionResult !== null && (JSON.parse(executionResult) as { redrive_status?: string }).redrive_status === "cancelled";
}

/** The hold that was planned when this execution was claimed. */
export function plannedHold({ executionStatus, executionResult }: Candidate): Hold | undefined {
  if (executionStatus !== "executing" || executionResult === null) return undefined;
  return (JSON.parse(executionResult) as { hold?: Hold }).hold;
}

export function ending(
  { candidateId, groupId, redriveId, selectedAction, confidence: confidenceBefore }: Candidate,
  status: ExecutionStatus,
  by: Actor,
  { result, hold, durationMs, confidenceAfter }: Ending,
): { patch: CandidatePatch; provenance: NewProvenance[] } {
  const details = { ...result, ...(hold && { held_by: hold.owner }) };
  const event = status === "unknown" ? "execution_unknown" : "executed";
  return {
    patch: {
      executionStatus: status,
      leaseMs: null,
      executionResult: JSON.stringify({ status, ...details }),
      ...(hold && { heldBy: hold.owner, owner: hold.owner, note: hold.note }),
    },
    provenance: [
      line(event, by, {
        candidateId,
        groupId,
        redriveId,
        action: selectedAction,
        durationMs,
        confidenceBefore,
        confidenceAfter,
        details,
      }),
    ],
  };
}
