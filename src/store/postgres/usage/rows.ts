/**
 * A turn as a row: which columns are read, how they become a Turn again. Everything travels as text, so that it comes back the same
 * from every driver a caller's transaction may run on.
 */

import { fromEpoch } from "../../shared/clock-sql.ts";
import type { Bucket, SettlementMethod, Turn, TurnOutcome, TurnState } from "../../usage.ts";
import type { Row } from "../connection.ts";

/** Stands for "the tenant itself" where a quota row needs a user. */
export const NIL_USER = "00000000000000000000000000000000";

const hex = (column: string) => `replace(${column}::text, '-', '')`;
const epoch = (column: string) => `extract(epoch from ${column})::text`;

const EXPRESSIONS = [
  hex("tenant_id"),
  hex("turn_id"),
  hex("request_id"),
  hex("chat_id"),
  hex("user_id"),
  "state",
  "policy_version",
  "model",
  "period",
  "buckets",
  "estimated_input_tokens::text",
  "output_tokens_max::text",
  "generation_floor_tokens::text",
  "input_rate::text",
  "output_rate::text",
  "reserved_credits::text",
  epoch("started_at"),
  epoch("progress_at"),
  "outcome",
  "method",
  "input_tokens::text",
  "output_tokens::text",
  "counters",
  "credits::text",
  "capped::text",
  "reason",
  epoch("finalized_at"),
  hex("finalization_id"),
  "message_id::text",
];

/** Named apart, because some drivers hand rows over as objects. */
export const TURN_COLUMNS = EXPRESSIONS.map((expression, i) => `${expression} as c${i}`).join(", ");
export const TURN_WIDTH = EXPRESSIONS.length;

/** What `buckets` holds: `[["total","1000"],["tier:premium",null]]`. */
export const bucketsText = (buckets: readonly Bucket[]): string =>
  JSON.stringify(buckets.map(({ name, limitCredits }) => [name, limitCredits === null ? null : String(limitCredits)]));

function bucketsOf(text: string): Bucket[] {
  const pairs = JSON.parse(text) as [string, string | null][];
  return pairs.map(([name, limit]) => ({ name, limitCredits: limit === null ? null : BigInt(limit) }));
}

export const bucketNames = (buckets: readonly Bucket[]): string => JSON.stringify(buckets.map(({ name }) => name));

export function turnOf(row: Row): Turn {
  const text = (i: number) => row[i] as string;
  const maybe = (i: number) => row[i] ?? null;
  return {
    tenantId: text(0),
    turnId: text(1),
    requestId: text(2),
    chatId: text(3),
    userId: maybe(4),
    state: text(5) as TurnState,
    policyVersion: text(6),
    model: text(7),
    period: text(8),
    buckets: bucketsOf(text(9)),
    estimatedInputTokens: Number(row[10]),
    outputTokensMax: Number(row[11]),
    generationFloorTokens: Number(row[12]),
    inputRate: BigInt(text(13)),
    outputRate: BigInt(text(14)),
    reservedCredits: BigInt(text(15)),
    startedAt: fromEpoch(row[16]) as Date,
    progressAt: fromEpoch(row[17]) as Date,
    settlement:
      maybe(18) === null
        ? null
        : {
            outcome: text(18) as TurnOutcome,
            method: text(19) as SettlementMethod,
            inputTokens: Number(row[20]),
            outputTokens: Number(row[21]),
            counters: maybe(22) === null ? {} : (JSON.parse(text(22)) as Record<string, number>),
            credits: BigInt(text(23)),
            capped: text(24) === "true",
            reason: maybe(25),
          },
    finalizedAt: fromEpoch(row[26]),
    finalizationId: maybe(27),
    messageId: maybe(28),
  };
}
