/**
 * AUDIT PRUNE: a month of records leaves as a whole once all of it is older than the policy keeps and nothing in it is held; without a
 * policy nothing leaves. Every step can be repeated: the next run finishes what a crash left half done. It also keeps months ahead.
 */
import type { AuditRetention } from "../../audit.ts";
import type { DepartMonth } from "../../evidence.ts";
import { clockSql } from "../../shared/clock-sql.ts";
import { numberRows } from "../../shared/evidence-rows.ts";
import type { Queryable } from "../connection.ts";
import type { Db } from "../db.ts";
import { runOf } from "../run-of.ts";
import { attachMonth, ensureMonths, monthOf, monthOfPartition, monthsAround } from "./months.ts";

const monthsSql = `select c.relname, (i.inhrelid is not null)::text, coalesce(i.inhdetachpending, false)::text
  from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
  where n.nspname = $1 and c.relkind = 'r' and c.relname ~ '^audit_record_[0-9]{6}(_leaving)?$' order by 1`;

/** Identities deleted by one statement. */
const BATCH = 10_000;
const NUMBERED_AT_ONCE = 5_000;

export const heldSql = (s: string, table: string): string => `select (exists (select from ${s}.audit_hold h join ${table} r
    on r.correlation_id = h.correlation_id where h.released_at is null)
  or exists (select from ${s}.audit_hold h join ${s}.audit_event e on e.event_id = h.event_id
    join ${table} r on r.recorded_at = e.recorded_at and r.seq = e.seq where h.released_at is null))::text as held`;

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

  /** Every row that goes has its leaf by then. */
  async function numberAll(): Promise<void> {
    const some = () => connection.transaction("number audit records", (client) => numberRows(runOf(client), s, NUMBERED_AT_ONCE));
    while ((await some()) > 0);
  }

  /** Whether it goes, decided against holds that are placed at the same time: after this none finds its records any more. */
  const decided = (name: string, month: number): Promise<boolean> =>
    connection.transaction("prune audit records", async (client: Queryable) => {
      await client.query("set local lock_timeout = '5s'");
      await client.query(`lock table ${s}.audit_hold in share mode`);
      const { rows } = await client.query(heldSql(s, `${s}.${name}`));
      const { held } = rows[0] as { held: string };
      if (held === "true") await attachMonth(client, s, month);
      else await client.query(`alter table ${s}.${name} rename to ${name}_leaving`);
      return held !== "true";
    });

  async function drop(table: string, month: number, departs: DepartMonth | undefined): Promise<void> {
    await connection.transaction("prune audit records", async (client) => {
      // Two may be at it: the second one finds nothing.
      const { rows } = await client.query(`select to_regclass('${s}.${table}') is not null as there`);
      if (!(rows[0] as { there: boolean }).there) return;
      await client.query(`lock table ${s}.${table} in access exclusive mode`);
      const [from, to] = [new Date(month), new Date(monthOf(month, 1))];
      await departs?.(runOf(client), { table: `${s}.${table}`, from, to });
      await client.query(`drop table ${s}.${table}`);
    });
  }

  return async function prune({ keptMs, departs, now }) {
    const [time] = await run(`select extract(epoch from ${clockSql(now)})::text`);
    const nowMs = Number(time?.[0]) * 1_000;
    await ensureMonths(connection, s, monthsAround(nowMs));
    if (keptMs === null) return 0;
    let count = 0;
    for (const [name, attached, pending] of (await run(monthsSql, [s.replaceAll('"', "")])) as string[][]) {
      const month = monthOfPartition(name as string);
      if (name === undefined || month === null || monthOf(month, 1) > nowMs - keptMs) continue;
      const isLeaving = name.endsWith("_leaving");
      if (!isLeaving) {
        if (pending === "true") await run(`alter table ${s}.audit_record detach partition ${s}.${name} finalize`);
        // What a crash left detached begins again: rows get their numbers only in their table.
        if (attached !== "true" || pending === "true")
          await connection.transaction("prune audit records", (client) => attachMonth(client, s, month));
        await numberAll();
        // Not taken out at all while something holds it: a detached month is not listed.
        if ((await run(heldSql(s, `${s}.${name}`)))[0]?.[0] === "true") continue;
        // Concurrently: a plain DETACH would wait for open transactions and hold up every writer behind itself.
        await run(`alter table ${s}.audit_record detach partition ${s}.${name} concurrently`);
      }
      if (!isLeaving && !(await decided(name, month))) continue;
      const table = isLeaving ? name : `${name}_leaving`;
      count += await forget(table);
      await drop(table, month, departs);
    }
    return count;
  };
}
