/**
 * What is done with a message of `recovery/evaluate`: the candidate it names is evaluated and, where everything speaks for it, executed. The
 * seed's stream entries (fields as texts, `candidate_id` among them) are read as well as our own.
 */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import { DELIVERED, type Outcome } from "../../message/outcome.ts";
import { retryPolicy } from "../../message/retry-policy.ts";
import { line, SYSTEM } from "../provenance.ts";
import { EVALUATION_ATTEMPTS_MAX, RECOVERY_TOPIC } from "../topics.ts";
import { keptOf } from "./auto-execution.ts";
import type { Candidate } from "./candidate.ts";
import { evaluateCandidate, failEvaluation } from "./evaluate-candidate.ts";
import { execute } from "./execute.ts";
import type { CandidateDeps } from "./found.ts";

const DAY_MS = 24 * 3_600_000;

/** `attempt`: the number of this try, from 1. */
export async function evaluateMessage(deps: CandidateDeps, payload: unknown, attempt: number): Promise<Outcome> {
  const candidateId = candidateIdOf(payload);
  if (candidateId === null) {
    const error = "the payload names no candidate: it needs candidate_id, a whole number";
    return { kind: "reject", code: "invalid_message", error };
  }
  try {
    await autoExecute(deps, await evaluateCandidate(deps, candidateId));
    return DELIVERED;
  } catch (thrown) {
    const code = isMakegoodError(thrown) ? thrown.code : "evaluation_failed";
    const error = errorText(thrown);
    if (code === "candidate_not_found") return { kind: "reject", code, error };
    // Read each time: an operator may have given the topic another policy.
    const topic = await deps.topics.get(RECOVERY_TOPIC);
    const attemptsMax = (topic && retryPolicy(topic.retry)?.attemptsMax) ?? EVALUATION_ATTEMPTS_MAX;
    if (attempt >= attemptsMax) await failEvaluation(deps, candidateId, error);
    return { kind: "retry", code, error };
  }
}

/** The gates were asked with the evaluation and their answer is on record; the claim asks for the group, version and budget once more. */
async function autoExecute(deps: CandidateDeps, candidate: Candidate): Promise<void> {
  const { recovery, settings } = deps;
  const { candidateId, groupId, version, evaluationStatus, executionStatus, selectedAction } = candidate;
  if (!settings.autoExecute || executionStatus !== "pending" || evaluationStatus !== "evaluated") return;
  const { allowed = false, explore } = keptOf(candidate).auto_execution ?? {};
  if (!allowed) return;
  const instead = explore !== undefined && (await mayExplore(deps)) ? explore : undefined;
  const suggested = `suggested with confidence ${candidate.confidence?.toFixed(2)}`;
  const reason = instead === undefined ? suggested : `to learn more, in place of ${selectedAction}, which is ${suggested}`;
  try {
    await execute(deps, candidateId, { ...SYSTEM, version, reason }, { instead });
  } catch (error) {
    if (!isMakegoodError(error)) throw error;
    // Refused is an answer: it waits for a person, or for its next evaluation.
    await recovery.note([line("auto_execution_refused", SYSTEM, { candidateId, groupId, reason: error.message })]);
  }
}

/** A share of what runs without a person in a day may try what teaches more. */
async function mayExplore({ recovery, settings }: CandidateDeps): Promise<boolean> {
  const { explored, executions } = await recovery.automatic(DAY_MS);
  return explored + 1 <= settings.autoExploreShare * (executions + 1);
}

function candidateIdOf(payload: unknown): number | null {
  if (typeof payload !== "object" || payload === null || !Object.hasOwn(payload, "candidate_id")) return null;
  const given = (payload as { candidate_id: unknown }).candidate_id;
  const id = typeof given === "string" && /^\d{1,15}$/.test(given) ? Number(given) : given;
  return typeof id === "number" && Number.isSafeInteger(id) && id > 0 ? id : null;
}
