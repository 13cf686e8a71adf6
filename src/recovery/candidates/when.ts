/**
 * When a candidate is evaluated, and when a closed one makes room for the next. An evaluation is due at 1, 2, 5, 10, 20, 50, … occurrences,
 * so that a thousand failures cost about ten of them.
 */
import type { NewMessage } from "../../message/message.ts";
import type { At } from "../../store/store.ts";
import { RECOVERY_TOPIC } from "../topics.ts";
import type { Candidate } from "./candidate.ts";

export interface AskSettings extends At {
  /** Ids of the messages that ask for evaluations. */
  readonly ids: () => string;
  /** A person asks: an evaluation is due at any count. */
  readonly asked?: boolean | undefined;
}

export interface IngestSettings extends AskSettings {
  readonly rejectedRestMs: number;
}

/** Whether a step (1, 2 or 5 times a power of ten) lies above `before` and not above `occurrences`. */
export function evaluationIsDue(occurrences: number, before: number): boolean {
  for (let power = 1; power <= occurrences; power *= 10) {
    for (const step of [power, 2 * power, 5 * power]) if (step > before && step <= occurrences) return true;
  }
  return false;
}

/** Failures go on after a decision: an executed candidate makes room at once, a rejected one after a rest. */
export function makesRoom(closed: Candidate, now: Date, rejectedRestMs: number): boolean {
  if (closed.decision !== "rejected") return true;
  return now.getTime() - closed.updatedAt.getTime() >= rejectedRestMs;
}

/** A candidate that a person decided about, or that is being executed, is not evaluated again. */
export function isEvaluable({ decision, executionStatus }: Pick<Candidate, "decision" | "executionStatus">): boolean {
  return decision === "pending" && executionStatus === "pending";
}

/**
 * The message that asks for an evaluation after the count rose to `occurrences` from `before`, and the candidate as it stands with it;
 * null: none is due. The first of a round is due at any count: nothing has been suggested yet.
 */
export function askEvaluation(
  { ids, asked = false }: AskSettings,
  candidate: Candidate,
  { occurrences, before, now }: { readonly occurrences: number; readonly before: number; readonly now: Date },
): { readonly message: NewMessage; readonly candidate: Candidate } | null {
  if (!isEvaluable(candidate)) return null;
  if (!asked && candidate.evaluations > 0 && !evaluationIsDue(occurrences, before)) return null;
  const evaluations = candidate.evaluations + 1;
  const next: Candidate = {
    ...candidate,
    evaluationStatus: "unevaluated",
    evaluations,
    version: candidate.version + 1,
    updatedAt: now,
  };
  return { message: evaluationMessage(ids(), next), candidate: next };
}

/** The queue entry of an evaluation: a message of the kernel, written together with what made it due. */
export function evaluationMessage(id: string, { candidateId, groupId, evaluations }: Candidate): NewMessage {
  return {
    id,
    topic: RECOVERY_TOPIC,
    tenantId: null,
    key: null,
    payload: JSON.stringify({ candidate_id: candidateId, group_id: groupId, evaluation: evaluations }),
    payloadHash: "",
    delayMs: 0,
    priority: 0,
    orderingKey: null,
    traceparent: null,
    schemaVersion: null,
  };
}
