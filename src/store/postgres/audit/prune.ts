/**
 * AUDIT PRUNE: a month of records leaves as a whole once all of it is older than the policy keeps and nothing in it is held; without a
 * policy nothing leaves. Every step can be repeated: the next run finishes what a crash left half done. It also keeps months ahead.
 */
import type { Fence } from "../../../platform/job.ts";
import type { AuditArchive, AuditRetention } from "../../audit.ts";
import type { DepartMonth } from "../../evidence.ts";
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX, chainLock, chainLockSql, chunkSql } from "../../shared/archive-sql.ts";
import { clockSql } from "../../shared/clock-sql.ts";
import { numberRows } from "../../shared/evidence-rows.ts";
import type { Queryable } from "../connection.ts";
import type { Db } from "../db.ts";
import { runOf } from "../run-of.ts";
import { fenceIn } from "../statements/lead.ts";
import { unlessMoved } from "../unless-moved.ts";
import { attachMonth, ensureMonths, monthOf, monthOfPartition, monthsAround } from "./months.ts";

const monthsSql = `select c.relname, (i.inhrelid is not null)::text, coalesce(i.inhdetachpending, false)::text
  from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
  where n.nspname = $1 and c.relkind = 'r' and c.relname ~ '^audit_record_[0-9]{6}(_leaving)?$' order by 1`;

/** The class that the archive knows them by. */
const AUDIT_CLASS = "audit";
const NUMBERED_AT_ONCE = 5_000;

export const heldSql = (s: string, table: string): string => `select (exists (select from ${s}.audit_hold h join ${table} r
    on r.correlation_id = h.correlation_id where h.released_at is null)
  or exists (select from ${s}.audit_hold h join ${s}.audit_event e on e.event_id = h.event_id
    join ${table} r on r.recorded_at = e.recorded_at and r.seq = e.seq where h.released_at is null))::text as held`;

/** Records that still have their identity, as many as one chunk takes; nobody else takes them meanwhile. */
const takeSql = (
  s: string,
  table: string,
): string => `with e as materialized (select r.seq, octet_length(r.payload) as size from ${s}.${table} r
    join ${s}.audit_event e on e.event_id = r.event_id and e.seq = r.seq order by r.seq limit ${CHUNK_ROWS_MAX} for update of e skip locked)
  select x.seq::text from (select e.seq, sum(e.size) over (order by e.seq) - e.size as before from e) x
  where x.before < ${CHUNK_BYTES_MAX} order by x.seq`;

const leftSql = (s: string, table: string): string =>
  `select exists (select from ${s}.${table} r join ${s}.audit_event e on e.event_id = r.event_id and e.seq = r.seq) as left`;

type Under = Fence | null | undefined;
type Chunk = Parameters<AuditArchive["told"]>[0];

export function createAuditPrune(db: Db): (retention: AuditRetention) => Promise<number> {
  const { connection, s } = db;
  const run = (text: string, values: unknown[] = []) => connection.rows("prune audit records", text, values);

  /** All that one call writes, but for a month that is detached: its fence is asked for before, and two may do it. */
  const inFence = <T>(under: Under, work: (client: Queryable) => Promise<T>): Promise<T> =>
    connection.transaction("prune audit records", async (client) => {
      await fenceIn(client, s, under);
      return work(client);
    });

  /**
   * The records of a month that is detached already, a batch at a time: what goes to the archive and its identity are one write, so that each
   * is archived once, also when the process is killed in between. Counted is what this call took: two may be at it.
   */
  async function forget({ under, archive }: AuditRetention, table: string): Promise<number> {
    let count = 0;
    for (let more = true; more; ) {
      let chunk: Chunk | null = null;
      const taken = await inFence(under, async (client) => {
        const rows = await runOf(client)(takeSql(s, table));
        const seqs = rows.map(([seq]) => seq);
        chunk = archive && seqs.length > 0 ? await archiveSome(client, table, archive.text, seqs) : null;
        await client.query(`delete from ${s}.audit_event where seq = any ($1::bigint[])`, [seqs]);
        return seqs.length;
      });
      if (chunk) archive?.told(chunk);
      count += taken;
      more = taken > 0;
    }
    return count;
  }

  async function archiveSome(client: Queryable, table: string, text: boolean, seqs: readonly unknown[]): Promise<Chunk> {
    const run = runOf(client);
    await run(chainLockSql, [chainLock(s, AUDIT_CLASS)]);
    const lines = `select r.seq as sort, r.event_id as id, r.recorded_at as at, row_to_json(r)::text as line from ${s}.${table} r where r.seq = any ($3::bigint[])`;
    const [made] = await run(chunkSql(s, lines), [AUDIT_CLASS, text, seqs]);
    return { rows: Number(made?.[1]), bytes: text ? Number(made?.[2]) : 0 };
  }

  /** Every row that goes has its leaf by then. */
  async function numberAll(under: Under): Promise<void> {
    const some = () => inFence(under, (client) => numberRows(runOf(client), s, NUMBERED_AT_ONCE));
    while ((await some()) > 0);
  }

  /** Whether it goes, decided against holds that are placed at the same time: after this none finds its records any more. */
  const decided = (under: Under, name: string, month: number): Promise<boolean> =>
    inFence(under, async (client) => {
      await client.query("set local lock_timeout = '5s'");
      await client.query(`lock table ${s}.audit_hold in share mode`);
      const { rows } = await client.query(heldSql(s, `${s}.${name}`));
      const { held } = rows[0] as { held: string };
      if (held === "true") await attachMonth(client, s, month);
      else await client.query(`alter table ${s}.${name} rename to ${name}_leaving`);
      return held !== "true";
    });

  /** False: not all of it was taken, since another run was at it and was cut off. */
  const drop = (under: Under, table: string, month: number, departs: DepartMonth | undefined): Promise<boolean> =>
    inFence(under, async (client) => {
      // Two may be at it: the second one finds nothing.
      const { rows } = await client.query(`select to_regclass('${s}.${table}') is not null as there`);
      if (!(rows[0] as { there: boolean }).there) return true;
      await client.query(`lock table ${s}.${table} in access exclusive mode`);
      if (((await client.query(leftSql(s, table))).rows[0] as { left: boolean }).left) return false;
      const [from, to] = [new Date(month), new Date(monthOf(month, 1))];
      await departs?.(runOf(client), { table: `${s}.${table}`, from, to });
      await client.query(`drop table ${s}.${table}`);
      return true;
    });

  /** Whether a month that is still in its place was taken out, to leave; not while something holds it: a detached month is not listed. */
  async function takeOut(under: Under, name: string, month: number, attached: boolean, pending: boolean): Promise<boolean> {
    if (pending) await run(`alter table ${s}.audit_record detach partition ${s}.${name} finalize`);
    // What a crash left detached begins again: rows get their numbers only in their table.
    if (!attached || pending) await inFence(under, (client) => attachMonth(client, s, month));
    await numberAll(under);
    if ((await run(heldSql(s, `${s}.${name}`)))[0]?.[0] === "true") return false;
    await inFence(under, async () => {});
    // Concurrently: a plain DETACH would wait for open transactions and hold up every writer behind itself.
    await run(`alter table ${s}.audit_record detach partition ${s}.${name} concurrently`);
    return decided(under, name, month);
  }

  /** How many records of a month would go. */
  async function wouldGo(name: string): Promise<number> {
    const held = !name.endsWith("_leaving") && (await run(heldSql(s, `${s}.${name}`)))[0]?.[0] === "true";
    return held ? 0 : Number((await run(`select count(*)::text from ${s}.${name}`))[0]?.[0]);
  }

  return async function prune(retention) {
    const { keptMs, departs, now, under, dryRun } = retention;
    const [time] = await run(`select extract(epoch from ${clockSql(now)})::text`);
    const nowMs = Number(time?.[0]) * 1_000;
    if (!dryRun) await ensureMonths(connection, s, monthsAround(nowMs));
    if (keptMs === null) return 0;
    let count = 0;
    for (const [name, attached, pending] of (await run(monthsSql, [s.replaceAll('"', "")])) as string[][]) {
      const month = monthOfPartition(name as string);
      if (name === undefined || month === null || monthOf(month, 1) > nowMs - keptMs) continue;
      if (dryRun) {
        count += await wouldGo(name);
        continue;
      }
      const isLeaving = name.endsWith("_leaving");
      const out = () => takeOut(under, name, month, attached === "true", pending === "true");
      if (!isLeaving && !(await unlessMoved(db, name, false, out))) continue;
      const table = isLeaving ? name : `${name}_leaving`;
      await unlessMoved(db, table, undefined, async () => {
        do count += await forget(retention, table);
        while (!(await drop(under, table, month, departs)));
      });
    }
    return count;
  };
}
