/**
 * What is done with a message of `recovery/evaluate`: the candidate it names is evaluated and, where everything speaks for it, executed. The
 * seed's stream entries (fields as texts, `candidate_id` among them) are read as well as our own. The answer is an outcome.
 */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import { DELIVERED, type Outcome } from "../../message/outcome.ts";
import { retryPolicy } from "../../message/retry-policy.ts";
import type { TopicStore } from "../../store/topics.ts";
import type { NewProvenance } from "../provenance.ts";
import { line, SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { RecoverySettings } from "../settings.ts";
import { EVALUATION_ATTEMPTS_MAX, RECOVERY_TOPIC } from "../topics.ts";
import type { AutoExecutionRecord } from "./auto-execution.ts";
import type { Candidate } from "./candidate.ts";
import type { Evaluator } from "./evaluate-candidate.ts";
import type { Execute } from "./execute.ts";

export interface EvaluateMessageDeps {
  readonly evaluator: Evaluator;
  readonly execute: Execute;
  readonly automatic: Records["automatic"];
  readonly note: (lines: readonly NewProvenance[]) => Promise<void>;
  readonly topics: Pick<TopicStore, "get">;
  readonly settings: RecoverySettings;
}

const DAY_MS = 24 * 3_600_000;

/** `attempt`: the number of this try, from 1. */
export type EvaluateMessage = (payload: unknown, attempt: number) => Promise<Outcome>;

export function createEvaluateMessage({
  evaluator,
  execute,
  automatic,
  note,
  topics,
  settings,
}: EvaluateMessageDeps): EvaluateMessage {
  /** The gates were asked with the evaluation and their answer is on record; the claim asks for the group, version and budget once more. */
  async function autoExecute(candidate: Candidate): Promise<void> {
    const { candidateId, groupId, version } = candidate;
    if (!settings.autoExecute || candidate.executionStatus !== "pending" || !isAllowed(candidate)) return;
    const instead = await explored(candidate);
    const { autoExecutionsPerHour: executionsPerHour, autoMessagesMax: messagesMax } = settings;
    const budget = { executionsPerHour, messagesMax, instead };
    const suggested = `suggested with confidence ${candidate.confidence?.toFixed(2)}`;
    const reason =
      instead === undefined ? suggested : `to learn more, in place of ${candidate.selectedAction}, which is ${suggested}`;
    try {
      await execute(candidateId, { ...SYSTEM, version, reason }, budget);
    } catch (error) {
      if (!isMakegoodError(error)) throw error;
      // Refused is an answer: it waits for a person, or for its next evaluation.
      await note([line("auto_execution_refused", SYSTEM, { candidateId, groupId, reason: error.message })]);
    }
  }

  /** A share of what runs without a person in a day may try what teaches more. */
  async function explored({ evaluation }: Candidate): Promise<string | undefined> {
    const { explore } = autoOf(evaluation);
    if (explore === undefined) return undefined;
    const so = await automatic(DAY_MS);
    return so.explored + 1 <= settings.autoExploreShare * (so.executions + 1) ? explore : undefined;
  }

  /** Read each time: an operator may have given the topic another policy. */
  async function attemptsMax(): Promise<number> {
    const record = await topics.get(RECOVERY_TOPIC);
    return (record && retryPolicy(record.retry)?.attemptsMax) ?? EVALUATION_ATTEMPTS_MAX;
  }

  return async (payload, attempt) => {
    const candidateId = candidateIdOf(payload);
    if (candidateId === null) {
      return {
        kind: "reject",
        code: "invalid_message",
        error: "the payload names no candidate: it needs candidate_id, a whole number",
      };
    }
    try {
      const { candidate } = await evaluator.evaluate(candidateId);
      await autoExecute(candidate);
      return DELIVERED;
    } catch (error) {
      if (isMakegoodError(error) && error.code === "candidate_not_found") {
        return { kind: "reject", code: error.code, error: error.message };
      }
      if (attempt >= (await attemptsMax())) await evaluator.fail(candidateId, errorText(error));
      const code = isMakegoodError(error) ? error.code : "evaluation_failed";
      return { kind: "retry", code, error: errorText(error) };
    }
  };
}

function candidateIdOf(payload: unknown): number | null {
  if (typeof payload !== "object" || payload === null || !Object.hasOwn(payload, "candidate_id")) return null;
  const given = (payload as { candidate_id: unknown }).candidate_id;
  const id = typeof given === "string" && /^\d{1,15}$/.test(given) ? Number(given) : given;
  return typeof id === "number" && Number.isSafeInteger(id) && id > 0 ? id : null;
}

const autoOf = (evaluation: string | null): Partial<AutoExecutionRecord> =>
  evaluation === null ? {} : ((JSON.parse(evaluation) as { auto_execution?: AutoExecutionRecord }).auto_execution ?? {});

function isAllowed({ evaluation, evaluationStatus }: Candidate): boolean {
  return evaluationStatus === "evaluated" && autoOf(evaluation).allowed === true;
}
