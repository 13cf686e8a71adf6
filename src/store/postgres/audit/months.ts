/**
 * Month partitions of the audit records, by the time they were stored. Room ahead is part of accepting: the next month exists in
 * advance, and a write makes a missing one as a last resort. Creating is safe when two do it at once.
 */
import type { Connection, Queryable } from "../connection.ts";

const MONTHS_AHEAD = 1;
/** `leaving`: it was decided that the month goes, and nothing brings it back. */
const PARTITION = /^audit_record_(\d{4})(\d{2})(?:_leaving)?$/;

/** The first moment of the month that is `offset` months after the one of `ms`. */
export function monthOf(ms: number, offset = 0): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset, 1);
}

export function monthsAround(nowMs: number): number[] {
  return Array.from({ length: MONTHS_AHEAD + 1 }, (_, i) => monthOf(nowMs, i));
}

/** The month that a table's name stands for, or null when it is not one of ours. */
export function monthOfPartition(name: string): number | null {
  const match = PARTITION.exec(name);
  return match ? Date.UTC(Number(match[1]), Number(match[2]) - 1, 1) : null;
}

const tableOf = (month: number): string => `audit_record_${new Date(month).toISOString().slice(0, 7).replace("-", "")}`;

/**
 * One transaction a month; the advisory lock lets one process make it at a time. The table is made first and attached then:
 * CREATE … PARTITION OF would lock out every writer while it waits.
 */
export async function ensureMonths(connection: Connection, s: string, months: readonly number[]): Promise<void> {
  const names = months.map(tableOf);
  const missing = await connection.rows(
    "look for audit months",
    `select n from unnest($1::text[]) n where to_regclass('${s}.' || n) is null`,
    [names],
    { reads: true },
  );
  for (const month of months.filter((_, i) => missing.some(([name]) => name === names[i]))) {
    const table = `${s}.${tableOf(month)}`;
    await connection.transaction("make an audit month", async (client) => {
      await client.query("set local lock_timeout = '5s'");
      await client.query("select pg_advisory_xact_lock(hashtextextended($1, 1))", [`makegood partitions ${s}`]);
      // Asked of the catalog itself: to_regclass() may still answer from before the other one committed.
      const { rows } = await client.query(
        `select exists (select from pg_catalog.pg_class where relnamespace = to_regnamespace('${s}') and relname = $1) as there`,
        [tableOf(month)],
      );
      if ((rows[0] as { there: boolean }).there) return;
      await client.query(`create table ${table} (like ${s}.audit_record including defaults)`);
      await attachMonth(client, s, month);
    });
  }
}

export async function attachMonth(client: Queryable, s: string, month: number): Promise<void> {
  const [from, to] = [month, monthOf(month, 1)].map((ms) => new Date(ms).toISOString());
  const table = `${s}.${tableOf(month)}`;
  await client.query(`alter table ${s}.audit_record attach partition ${table} for values from ('${from}') to ('${to}')`);
}
