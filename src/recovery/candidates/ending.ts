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

/** What was kept with the claim. */
export interface Started {
  readonly hold?: Hold | undefined;
  /** The topics whose breakers this execution opened, or was about to open. */
  readonly breakers?: readonly string[] | undefined;
  /** It sends reported failures again. */
  readonly sends?: Sends | undefined;
  /** Who reported so many failures carries it out. */
  readonly reports?: number | undefined;
}

/** How reported failures are sent again: the first few alone, then the rest unless too many of those failed. */
export interface Sends {
  readonly through: number;
  readonly canary: number;
  readonly failureShareMax: number;
  readonly notBeforeMs: number;
}

/** A person ended its redrive: what comes next on this group is a person's too. */
export function wasCancelled({ executionResult }: Pick<Candidate, "executionResult">): boolean {
  return executionResult !== null && (JSON.parse(executionResult) as { redrive_status?: string }).redrive_status === "cancelled";
}

/** What the claim writes as the result while there is none yet. */
export function startText(started: Started): string | null {
  return Object.values(started).every((each) => each === undefined) ? null : JSON.stringify({ status: "executing", ...started });
}

export const startedOf = ({ executionResult }: Pick<Candidate, "executionResult">): Started =>
  executionResult === null ? {} : (JSON.parse(executionResult) as Started);

export const breakersOf = (candidate: Pick<Candidate, "executionResult">) => startedOf(candidate).breakers ?? [];

/** The hold that was planned when this execution was claimed. */
export const plannedHold = (candidate: Candidate) =>
  candidate.executionStatus === "executing" ? startedOf(candidate).hold : undefined;

/** Whether it did more good than harm; what touched nothing did neither. */
export function endedBy({
  healed,
  failed,
}: {
  readonly healed: number;
  readonly failed: number;
}): "succeeded" | "failed" | "skipped" {
  if (healed + failed === 0) return "skipped";
  return healed > 0 && healed >= failed ? "succeeded" : "failed";
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
