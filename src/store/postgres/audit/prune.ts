/**
 * AUDIT PRUNE: a month of records leaves as a whole once all of it is older than the policy keeps; without a policy nothing
 * leaves. Every step can be repeated: the next run finishes what a crash left half done. It also keeps months ahead.
 */
import type { AuditRetention } from "../../audit.ts";
import { clockSql } from "../../shared/clock-sql.ts";
import type { Db } from "../db.ts";
import { ensureMonths, monthOf, monthOfPartition, monthsAround } from "./months.ts";

const monthsSql = `select c.relname, (i.inhrelid is not null)::text, coalesce(i.inhdetachpending, false)::text
  from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
  where n.nspname = $1 and c.relkind = 'r' and c.relname ~ '^audit_record_[0-9]{6}$' order by 1`;

/** Identities deleted by one statement. */
const BATCH = 10_000;

export function createAuditPrune({ connection, s }: Db): (retention: AuditRetention) => Promise<number> {
  const run = (text: string, values: unknown[] = []) => connection.rows("prune audit records", text, values);

  /** The identities of a month that is detached already, a batch at a time. Counted is what this call deleted: two may be at it. */
  async function forget(table: string): Promise<number> {
    let count = 0;
    for (let after = "0"; ; ) {
      const [row] = await run(
        `with p as materialized (select seq, event_id from ${s}.${table} where seq > $1::bigint order by seq limit ${BATCH}),
        d as (delete from ${s}.audit_event e using p where e.event_id = p.event_id and e.seq = p.seq returning 1)
        select max(seq)::text, (select count(*) from d)::text from p`,
        [after],
      );
      if (!row?.[0]) return count;
      after = row[0];
      count += Number(row[1]);
    }
  }

  return async function prune({ keptMs, now }) {
    const [time] = await run(`select extract(epoch from ${clockSql(now)})::text`);
    const nowMs = Number(time?.[0]) * 1_000;
    await ensureMonths(connection, s, monthsAround(nowMs));
    if (keptMs === null) return 0;
    let count = 0;
    for (const [name, attached, pending] of await run(monthsSql, [s.replaceAll('"', "")])) {
      const month = monthOfPartition(name as string);
      if (month === null || monthOf(month, 1) > nowMs - keptMs) continue;
      // Concurrently: a plain DETACH would wait for open transactions and hold up every writer behind itself.
      const how = pending === "true" ? "finalize" : "concurrently";
      if (attached === "true") await run(`alter table ${s}.audit_record detach partition ${s}.${name} ${how}`);
      count += await forget(name as string);
      await run(`drop table if exists ${s}.${name}`);
    }
    return count;
  };
}
