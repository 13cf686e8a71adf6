/**
 * What is read of turns and quota, on our own connections or inside a transaction: one turn, the silent ones, the quota rows, and
 * whether rows and turns add up.
 */

import { perClock } from "../../shared/clock-sql.ts";
import type { At, Transaction } from "../../store.ts";
import type { QuotaGap, QuotaUsage, Turn, TurnRef } from "../../usage.ts";
import type { Db } from "../db.ts";
import { queryIn } from "../transaction.ts";
import { NIL_USER, TURN_COLUMNS, turnOf } from "./rows.ts";

const gapsSql = (s: string) => `with turn as (
    select tenant_id, coalesce(user_id, '${NIL_USER}'::uuid) as user_id, period, b.v ->> 0 as bucket,
      sum(case when state = 'running' then reserved_credits else 0 end) as reserved, sum(coalesce(credits, 0)) as spent
    from ${s}.chat_turns cross join lateral json_array_elements(buckets::json) b(v) group by 1, 2, 3, 4),
  both_sides as (
    select coalesce(q.tenant_id, t.tenant_id) as tenant_id, coalesce(q.user_id, t.user_id) as user_id, coalesce(q.period, t.period) as period,
      coalesce(q.bucket, t.bucket) as bucket, coalesce(q.reserved_credits, 0) as q_reserved, coalesce(t.reserved, 0) as t_reserved,
      coalesce(q.spent_credits, 0) as q_spent, coalesce(t.spent, 0) as t_spent
    from ${s}.quota_usage q full join turn t
      on t.tenant_id = q.tenant_id and t.user_id = q.user_id and t.period = q.period and t.bucket = q.bucket)
  select replace(tenant_id::text, '-', ''), replace(user_id::text, '-', ''), period, bucket, w.what, w.row_credits::text, w.turn_credits::text
  from both_sides cross join lateral (values ('reserved', q_reserved, t_reserved), ('spent', q_spent, t_spent)) w(what, row_credits, turn_credits)
  where w.row_credits <> w.turn_credits order by 1, 2, 3, 4, 5`;

export function createUsageReads(db: Db) {
  const { s, connection } = db;
  const read = (text: string, values: unknown[]) => connection.rows("read usage", text, values, { reads: true });
  const turnSql = `select ${TURN_COLUMNS} from ${s}.chat_turns where tenant_id = $1::text::uuid and turn_id = $2::text::uuid`;
  const orphansSql = perClock(
    (clock) => `select replace(tenant_id::text, '-', ''), replace(turn_id::text, '-', '') from ${s}.chat_turns
      where state = 'running' and progress_at <= ${clock} - $1::bigint * interval '1 ms' order by progress_at limit $2::int`,
  );
  const progressSql = perClock(
    (clock) => `update ${s}.chat_turns set progress_at = greatest(progress_at, ${clock})
      where tenant_id = $1::text::uuid and turn_id = $2::text::uuid and state = 'running' returning 1`,
  );
  const quotaSql = `select period, bucket, limit_credits::text, reserved_credits::text, spent_credits::text, turns_running::text, turns_settled::text
    from ${s}.quota_usage where tenant_id = $1::text::uuid and user_id = $2::text::uuid and period = $3::text order by bucket`;

  return {
    async turn({ tenantId, turnId }: TurnRef, tx?: Transaction): Promise<Turn | null> {
      const values = [tenantId, turnId];
      const [row] = tx ? await queryIn(db, tx, turnSql, values) : await read(turnSql, values);
      return row ? turnOf(row) : null;
    },
    async progress({ tenantId, turnId }: TurnRef, at?: At): Promise<boolean> {
      const rows = await connection.rows("note progress", progressSql(at?.now), [tenantId, turnId]);
      return rows.length > 0;
    },
    async orphans({ idleMs, limit, now }: { idleMs: number; limit: number } & At): Promise<TurnRef[]> {
      const rows = await read(orphansSql(now), [idleMs, limit]);
      return rows.map(([tenantId, turnId]) => ({ tenantId: tenantId as string, turnId: turnId as string }));
    },
    async quota(of: { tenantId: string; userId: string | null; period: string }): Promise<QuotaUsage[]> {
      const rows = await read(quotaSql, [of.tenantId, of.userId ?? NIL_USER, of.period]);
      return rows.map((row) => ({
        period: row[0] as string,
        bucket: row[1] as string,
        limitCredits: row[2] ? BigInt(row[2]) : null,
        reservedCredits: BigInt(row[3] as string),
        spentCredits: BigInt(row[4] as string),
        turnsRunning: Number(row[5]),
        turnsSettled: Number(row[6]),
      }));
    },
    async verify(): Promise<QuotaGap[]> {
      return (await read(gapsSql(s), [])).map((row) => ({
        tenantId: row[0] as string,
        userId: row[1] === NIL_USER ? null : (row[1] as string),
        period: row[2] as string,
        bucket: row[3] as string,
        what: row[4] as QuotaGap["what"],
        rowCredits: BigInt(row[5] as string),
        turnCredits: BigInt(row[6] as string),
      }));
    },
  };
}

export type UsageReads = ReturnType<typeof createUsageReads>;
