/**
 * Day partitions of message and attempt, by the time inside the id. Room ahead is part of accepting: a week of days exists
 * in advance, and enqueue makes a missing one as a last resort. Creating is safe when two do it at once.
 */
import { idFloor } from "../../platform/ids.ts";
import type { Connection } from "./connection.ts";

export const DAY_MS = 86_400_000;
const DAYS_BEHIND = 1;
const DAYS_AHEAD = 7;

export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS) * DAY_MS;
}

export function partitionSuffix(day: number): string {
  return new Date(day).toISOString().slice(0, 10).replaceAll("-", "");
}

/** The day a partition's name stands for, or null when it is not one of ours. */
export function dayOfPartition(name: string): number | null {
  const match = /^message_(\d{4})(\d{2})(\d{2})$/.exec(name);
  return match ? Date.UTC(Number(match[1]), Number(match[2]) - 1, Number(match[3])) : null;
}

export function daysAround(nowMs: number): number[] {
  return Array.from({ length: DAYS_BEHIND + DAYS_AHEAD + 1 }, (_, i) => dayOf(nowMs) + (i - DAYS_BEHIND) * DAY_MS);
}

/**
 * One transaction a day. The advisory lock lets one process make them at a time; the table is made first and attached then,
 * because CREATE … PARTITION OF would take a lock that waits for, and then blocks, every caller's open transaction.
 */
export async function ensurePartitions(connection: Connection, s: string, days: readonly number[]): Promise<void> {
  const missing = await missingDays(connection, s, days);
  for (const day of missing) {
    const suffix = partitionSuffix(day);
    const [from, to] = [idFloor(day), idFloor(day + DAY_MS)];
    await connection.transaction("make a partition", async (client) => {
      await client.query("set local lock_timeout = '5s'");
      await client.query("select pg_advisory_xact_lock(hashtextextended($1, 1))", [`makegood partitions ${s}`]);
      if ((await missingDays(null, s, [day], client)).length === 0) return;
      await client.query(`create table ${s}.message_${suffix} (like ${s}.message including defaults)`);
      await client.query(
        `alter table ${s}.message attach partition ${s}.message_${suffix} for values from ('${from}') to ('${to}')`,
      );
      await makeAttempts(client, s, suffix, from, to);
    });
  }
}

type Client = { query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }> };

/** Where the day was there before, attempts of messages that stayed lie in the default partition, which would bar it: they come back. */
async function makeAttempts(client: Client, s: string, suffix: string, from: string, to: string): Promise<void> {
  const values = `for values from ('${from}') to ('${to}')`;
  const within = `message_id >= '${from}' and message_id < '${to}'`;
  const table = `${s}.attempt_${suffix}`;
  const there = `select from pg_catalog.pg_class c where c.relnamespace = to_regnamespace('${s}') and c.relname = 'attempt_${suffix}'`;
  const left = `select from ${s}.attempt_old where ${within}`;
  const { rows } = await client.query(`select exists (${there}) as there, exists (${left}) as stayed`);
  const { there: made, stayed } = rows[0] as { there: boolean; stayed: boolean };
  if (made) return;
  if (!stayed) return void (await client.query(`create table ${table} partition of ${s}.attempt ${values}`));
  await client.query(`lock table ${s}.attempt_old in share row exclusive mode`);
  await client.query(`create table ${table} (like ${s}.attempt including defaults including constraints)`);
  await client.query(
    `with moved as (delete from ${s}.attempt_old where ${within} returning *) insert into ${table} select * from moved`,
  );
  await client.query(`alter table ${s}.attempt attach partition ${table} ${values}`);
}

/** Asked of the catalog itself: to_regclass() may still answer from before another maker committed, although we hold the lock. */
async function missingDays(
  connection: Connection | null,
  s: string,
  days: readonly number[],
  client?: Client,
): Promise<number[]> {
  const text = `select d as day from unnest($1::text[]) d where not exists (
    select from pg_catalog.pg_class c where c.relnamespace = to_regnamespace('${s}') and c.relname = 'message_' || d)`;
  const names = days.map(partitionSuffix);
  const found = client
    ? (await client.query(text, [names])).rows.map((row) => (row as { day: string }).day)
    : ((await connection?.rows("look for partitions", text, [names], { reads: true })) ?? []).map((row) => row[0] as string);
  return days.filter((day) => found.includes(partitionSuffix(day)));
}

/** How many whole days of room are left ahead, for doctor and alerts. */
export async function daysAhead(connection: Connection, s: string, nowMs: number): Promise<number> {
  const days = daysAround(nowMs).filter((day) => day > nowMs);
  return days.length - (await missingDays(connection, s, days)).length;
}
