/**
 * Indexes of days that are older than the index: made concurrently, one day after the other, as a part of upkeep. A run that
 * is cut off leaves an invalid index behind, and the next run makes it anew.
 */
import type { Connection } from "./connection.ts";

/** Building waits for every open transaction; there is no hurry. */
const PATIENCE_MS = 3_600_000;

/** Days whose index is not part of message_lane, and whether a half-made one is in the way. */
const missingSql = `select c.relname, x.relname, (x.relname is not null and not xi.indisvalid)::text
  from pg_class p join pg_namespace n on n.oid = p.relnamespace join pg_inherits i on i.inhparent = p.oid join pg_class c on c.oid = i.inhrelid
  left join pg_class x on x.relnamespace = n.oid and x.relname = c.relname || '_lane' left join pg_index xi on xi.indexrelid = x.oid
  where n.nspname = $1 and p.relname = 'message' and not i.inhdetachpending and not exists (
    select from pg_inherits j join pg_index o on o.indexrelid = j.inhrelid join pg_class l on l.oid = j.inhparent
    where o.indrelid = c.oid and l.relname = 'message_lane')
  order by 1 desc`;

export async function ensureDayIndexes(connection: Connection, s: string): Promise<void> {
  const run = (text: string, values: unknown[] = []) => connection.rows("index a day", text, values, { patienceMs: PATIENCE_MS });
  for (const [day, made, invalid] of await run(missingSql, [s.replaceAll('"', "")])) {
    if (invalid === "true") await run(`drop index concurrently if exists ${s}.${made}`);
    await run(`create index concurrently if not exists ${day}_lane on ${s}.${day} (lane_id, id)`);
    await run(`alter index ${s}.message_lane attach partition ${s}.${day}_lane`);
  }
}
