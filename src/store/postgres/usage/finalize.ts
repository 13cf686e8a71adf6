/**
 * FINALIZE: compare and set under the turn's row lock, the message, the debit and the terminal state, all in one transaction. A
 * second caller waits for the lock, finds the turn final and changes nothing (OBX-13). The quota rows are locked last and
 * shortly, because every turn of a user shares them.
 */
import { MakegoodError } from "../../../message/errors.ts";
import { fromEpoch, perClock } from "../../shared/clock-sql.ts";
import type { Transaction } from "../../store.ts";
import {
  type FinalizeRequest,
  type FinalizeResult,
  type FinalizeWork,
  STATE_OF,
  type Turn,
  type TurnSettlement,
} from "../../usage.ts";
import type { Db } from "../db.ts";
import { queryIn } from "../transaction.ts";
import type { UsageReads } from "./reads.ts";
import { lockBucketsSql } from "./reserve.ts";
import { bucketNames, NIL_USER, TURN_COLUMNS, TURN_WIDTH, turnOf } from "./rows.ts";

/**
 * The compare: only a running turn is found. A watchdog asks for silence, too, and does not wait for another process that
 * finalises it now.
 */
const lockSql = (s: string, watchdog: boolean) =>
  perClock(
    (clock) => `select ${TURN_COLUMNS}, extract(epoch from ${clock})::text as now from ${s}.chat_turns
      where tenant_id = $1::text::uuid and turn_id = $2::text::uuid and state = 'running'
      ${watchdog ? `and progress_at <= ${clock} - $3::text::bigint * interval '1 ms' for update skip locked` : "for update"}`,
  );

/** The set. $1 tenant, $2 turn, $3 user, $4 period, $5 bucket names, $6 reserved, $7 credits, then the settlement. */
const settleSql = (s: string) => `with q as (
    update ${s}.quota_usage q set reserved_credits = q.reserved_credits - $6::text::bigint, spent_credits = q.spent_credits + $7::text::bigint,
      turns_running = q.turns_running - 1, turns_settled = q.turns_settled + 1
    where q.tenant_id = $1::text::uuid and q.user_id = $3::text::uuid and q.period = $4::text
      and q.bucket in (select json_array_elements_text($5::text::json)) returning 1),
  t as (
    update ${s}.chat_turns set state = $8::text, outcome = $9::text, method = $10::text, input_tokens = $11::text::bigint,
      output_tokens = $12::text::bigint, counters = $13::text, credits = $7::text::bigint, capped = $14::text::boolean, reason = $15::text,
      finalized_at = $16::text::timestamptz, finalization_id = $17::text::uuid, message_id = $18::text::uuid
    where tenant_id = $1::text::uuid and turn_id = $2::text::uuid and state = 'running' returning 1)
  select (select count(*) from q)::text as a, (select count(*) from t)::text as b`;

export function createFinalize(db: Db, reads: UsageReads) {
  const { s } = db;
  const [lock, lockSilent, lockBuckets, settle] = [lockSql(s, false), lockSql(s, true), lockBucketsSql(s), settleSql(s)];

  async function take(tx: Transaction, request: FinalizeRequest): Promise<{ turn: Turn; now: Date } | null> {
    const { tenantId, turnId, idleMs, now } = request;
    const text = idleMs === undefined ? lock(now) : lockSilent(now);
    const [row] = await queryIn(db, tx, text, [tenantId, turnId, ...(idleMs === undefined ? [] : [String(idleMs)])]);
    return row ? { turn: turnOf(row), now: fromEpoch(row[TURN_WIDTH]) as Date } : null;
  }

  async function write(tx: Transaction, turn: Turn): Promise<void> {
    const names = bucketNames(turn.buckets);
    const user = turn.userId ?? NIL_USER;
    // Before the turn's row is changed: a reserve of the same chat holds these and waits for that row.
    await queryIn(db, tx, lockBuckets, [turn.tenantId, user, turn.period, names]);
    const done = turn.settlement as TurnSettlement;
    const [row] = await queryIn(db, tx, settle, [
      turn.tenantId,
      turn.turnId,
      user,
      turn.period,
      names,
      String(turn.reservedCredits),
      String(done.credits),
      turn.state,
      done.outcome,
      done.method,
      String(done.inputTokens),
      String(done.outputTokens),
      Object.keys(done.counters).length === 0 ? null : JSON.stringify(done.counters),
      String(done.capped),
      done.reason,
      (turn.finalizedAt as Date).toISOString(),
      turn.finalizationId,
      turn.messageId,
    ]);
    if (row?.[0] === String(turn.buckets.length) && row[1] === "1") return;
    const text = `turn ${turn.turnId}: its quota rows are not those it reserved; nothing was written, look at quota_usage`;
    throw new MakegoodError("wrong_state", text, { turnId: turn.turnId });
  }

  return async function finalizeIn(tx: Transaction, request: FinalizeRequest, work: FinalizeWork): Promise<FinalizeResult> {
    const taken = await take(tx, request);
    if (!taken) {
      const turn = await reads.turn(request, tx);
      if (!turn) return { kind: "not_found" };
      return turn.state === "running" ? { kind: "busy" } : { kind: "already", turn };
    }
    const settlement = work.settle(taken.turn);
    const { finalizationId } = request;
    const ended = { state: STATE_OF[settlement.outcome], settlement, finalizedAt: taken.now, finalizationId };
    const turn: Turn = { ...taken.turn, ...ended };
    const final: Turn = { ...turn, messageId: await work.hand(turn, tx) };
    await write(tx, final);
    return { kind: "finalized", turn: final };
  };
}
