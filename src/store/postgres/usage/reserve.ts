/**
 * RESERVE: the turn and its quota in one transaction. The quota rows are locked first, in the order of their names, and the turn is
 * inserted together with the new sums: a refusal has written nothing, in a caller's transaction either.
 */
import { MakegoodError } from "../../../message/errors.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { At, Transaction } from "../../store.ts";
import type { Reservation, ReserveResult } from "../../usage.ts";
import type { Db } from "../db.ts";
import { queryIn } from "../transaction.ts";
import type { UsageReads } from "./reads.ts";
import { bucketNames, bucketsText, NIL_USER, TURN_COLUMNS, turnOf } from "./rows.ts";

/** A chat whose running turn ended while we looked is simply asked for again. */
const LOOKS_MAX = 3;

/** $1 tenant, $2 user, $3 period, $4 names: always in this order, so that two of these never wait for each other in a circle. */
export const lockBucketsSql = (
  s: string,
) => `select bucket as a, reserved_credits::text as b, spent_credits::text as c from ${s}.quota_usage
  where tenant_id = $1::text::uuid and user_id = $2::text::uuid and period = $3::text
    and bucket in (select json_array_elements_text($4::text::json)) order by bucket for update`;

const ensureSql = (s: string) => `insert into ${s}.quota_usage (tenant_id, user_id, period, bucket)
  select $1::text::uuid, $2::text::uuid, $3::text, b from json_array_elements_text($4::text::json) b order by b on conflict do nothing`;

const writeSql = (s: string) =>
  perClock(
    (clock) => `with t as (
      insert into ${s}.chat_turns (tenant_id, turn_id, request_id, chat_id, user_id, policy_version, model, period, buckets,
        estimated_input_tokens, output_tokens_max, generation_floor_tokens, input_rate, output_rate, reserved_credits, started_at, progress_at)
      values ($1::text::uuid, $2::text::uuid, $3::text::uuid, $4::text::uuid, $5::text::uuid, $6::text, $7::text, $8::text, $9::text,
        $10::text::bigint, $11::text::bigint, $12::text::bigint, $13::text::bigint, $14::text::bigint, $15::text::bigint, ${clock}, ${clock})
      on conflict do nothing returning *),
    q as (
      update ${s}.quota_usage q set reserved_credits = q.reserved_credits + $15::text::bigint, turns_running = q.turns_running + 1,
        limit_credits = (b.v ->> 1)::bigint
      from json_array_elements($9::text::json) b(v)
      where q.tenant_id = $1::text::uuid and q.user_id = coalesce($5::text, '${NIL_USER}')::uuid and q.period = $8::text
        and q.bucket = b.v ->> 0 and exists (select from t))
    select ${TURN_COLUMNS} from t`,
  );

const busySql = (s: string) => `select replace(turn_id::text, '-', '') as a from ${s}.chat_turns
  where tenant_id = $1::text::uuid and chat_id = $2::text::uuid and state = 'running'`;

export function createReserve(db: Db, reads: UsageReads) {
  const { s } = db;
  const [lock, ensure, write, busy] = [lockBucketsSql(s), ensureSql(s), writeSql(s), busySql(s)];

  /** Why the turn cannot be inserted; null when nothing stands in its way any more. */
  async function obstacle(reservation: Reservation, tx: Transaction): Promise<ReserveResult | null> {
    const known = await reads.turn(reservation, tx);
    if (known) {
      if (known.requestId === reservation.requestId) return { kind: "exists", turn: known };
      throw new MakegoodError("key_conflict", `turn ${known.turnId} belongs to request ${known.requestId}, not to this one`, {
        turnId: known.turnId,
      });
    }
    const [row] = await queryIn(db, tx, busy, [reservation.tenantId, reservation.chatId]);
    return row ? { kind: "chat_busy", turnId: row[0] as string } : null;
  }

  async function lockBuckets(reservation: Reservation, tx: Transaction): Promise<Map<string, bigint>> {
    const { tenantId, userId, period, buckets } = reservation;
    const values = [tenantId, userId ?? NIL_USER, period, bucketNames(buckets)];
    let rows = await queryIn(db, tx, lock, values);
    if (rows.length < buckets.length) {
      await queryIn(db, tx, ensure, values);
      rows = await queryIn(db, tx, lock, values);
    }
    return new Map(
      rows.map(([bucket, reserved, spent]) => [bucket as string, BigInt(reserved as string) + BigInt(spent as string)]),
    );
  }

  function overLimit(reservation: Reservation, used: Map<string, bigint>): ReserveResult | null {
    for (const { name, limitCredits } of reservation.buckets) {
      const usedCredits = used.get(name) ?? 0n;
      if (limitCredits === null || usedCredits + reservation.reservedCredits <= limitCredits) continue;
      return { kind: "quota_exceeded", bucket: name, limitCredits, usedCredits };
    }
    return null;
  }

  return async function reserveIn(tx: Transaction, reservation: Reservation, { now }: At): Promise<ReserveResult> {
    const refusal = overLimit(reservation, await lockBuckets(reservation, tx));
    if (refusal) return (await obstacle(reservation, tx)) ?? refusal;
    for (let look = 0; look < LOOKS_MAX; look++) {
      const [row] = await queryIn(db, tx, write(now), values(reservation));
      if (row) return { kind: "reserved", turn: turnOf(row) };
      const found = await obstacle(reservation, tx);
      if (found) return found;
    }
    throw new MakegoodError("retry_transaction", `turn ${reservation.turnId}: its chat keeps changing; reserve it again`);
  };
}

function values(r: Reservation): unknown[] {
  const numbers = [
    r.estimatedInputTokens,
    r.outputTokensMax,
    r.generationFloorTokens,
    r.inputRate,
    r.outputRate,
    r.reservedCredits,
  ];
  const texts = [
    r.tenantId,
    r.turnId,
    r.requestId,
    r.chatId,
    r.userId,
    r.policyVersion,
    r.model,
    r.period,
    bucketsText(r.buckets),
  ];
  return [...texts, ...numbers.map(String)];
}
