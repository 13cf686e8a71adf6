/** Rounds of suggestion: the next candidate of a group, when it may come, and when it is evaluated. */
import type { NewMessage } from "../../message/message.ts";
import type { Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { record, SYSTEM } from "../provenance.ts";
import { RECOVERY_TOPIC } from "../topics.ts";
import { type Candidate, candidateColumns, candidateOf, lineOf } from "./candidate.ts";
import { isEvaluable } from "./candidate-state.ts";

export interface AskSettings extends At {
  readonly ids: () => string;
  /** A person asks: an evaluation is due at any count. */
  readonly asked?: boolean | undefined;
}

export interface IngestSettings extends AskSettings {
  readonly rejectedRestMs: number;
}

/** By group id. */
export async function openRounds(
  s: string,
  run: Run,
  rounds: readonly { readonly group: string; readonly round: number; readonly groupVersion: number }[],
  now: Date,
): Promise<Map<string, Candidate>> {
  if (rounds.length === 0) return new Map();
  const clock = clockSql(now);
  const rows = await run(
    `with c as (insert into ${s}.recovery_candidate (group_id, round, group_version, created_at, updated_at)
        select x.*, ${clock}, ${clock} from unnest($1::bigint[], $2::int[], $3::int[]) x returning *)
      select ${candidateColumns(s)} from c`,
    [rounds.map((r) => r.group), rounds.map((r) => r.round), rounds.map((r) => r.groupVersion)],
  );
  const made = rows.map(candidateOf);
  const lines = made.map((one) => lineOf(one, "created", { ...SYSTEM, reason: `round ${one.round}` }));
  await record(s, run, lines, { now });
  return new Map(made.map((one) => [String(one.groupId), one]));
}

/** Failures go on after a decision: an executed candidate makes room at once, a rejected one after a rest. */
export function makesRoom(closed: Candidate, now: Date, rejectedRestMs: number): boolean {
  return closed.decision !== "rejected" || now.getTime() - closed.updatedAt.getTime() >= rejectedRestMs;
}

/** At each step of 1, 2 or 5 times a power of ten: a thousand failures cost about ten evaluations. */
export function evaluationIsDue(occurrences: number, before: number): boolean {
  for (let power = 1; power <= occurrences; power *= 10) {
    for (const step of [power, 2 * power, 5 * power]) if (step > before && step <= occurrences) return true;
  }
  return false;
}

/** The message, and the candidate as it stands with it; null: none is due. The first of a round is: nothing has been suggested yet. */
export function askEvaluation(
  { ids, asked = false }: AskSettings,
  candidate: Candidate,
  { occurrences, before, now }: { readonly occurrences: number; readonly before: number; readonly now: Date },
): { readonly message: NewMessage; readonly candidate: Candidate } | null {
  if (!isEvaluable(candidate)) return null;
  if (!asked && candidate.evaluations > 0 && !evaluationIsDue(occurrences, before)) return null;
  const { candidateId, groupId } = candidate;
  const evaluations = candidate.evaluations + 1;
  const payload = JSON.stringify({ candidate_id: candidateId, group_id: groupId, evaluation: evaluations });
  const next = { evaluationStatus: "unevaluated", evaluations, version: candidate.version + 1, updatedAt: now } as const;
  return {
    message: { ...PLAIN_MESSAGE, id: ids(), topic: RECOVERY_TOPIC, key: null, payload, payloadHash: "" },
    candidate: { ...candidate, ...next },
  };
}

/** What the engine's own messages leave unsaid. */
export const PLAIN_MESSAGE = {
  tenantId: null,
  delayMs: 0,
  priority: 0,
  orderingKey: null,
  traceparent: null,
  schemaVersion: null,
};
