/**
 * Indexes of days that are older than the index: made concurrently, one day after the other, as a part of upkeep. A run that
 * is cut off leaves an invalid index behind, and the next run makes it anew.
 */
import type { Connection } from "./connection.ts";

/** Building waits for every open transaction; there is no hurry. */
const PATIENCE_MS = 3_600_000;

/** What follows the name of a day's table, the index of all days that it is a part of, and what is indexed. */
const INDEXES = [
  { suffix: "lane", whole: "message_lane", on: "(lane_id, id)" },
  { suffix: "created", whole: "message_created", on: "using brin (created_at) with (pages_per_range = 32, autosummarize = on)" },
] as const;

/** $1 schema, $2 suffix, $3 whole. Days whose index is not part of the whole one, and whether a half-made one is in the way. */
const missingSql = `select c.relname, x.relname, (x.relname is not null and not xi.indisvalid)::text
  from pg_class p join pg_namespace n on n.oid = p.relnamespace join pg_inherits i on i.inhparent = p.oid join pg_class c on c.oid = i.inhrelid
  left join pg_class x on x.relnamespace = n.oid and x.relname = c.relname || '_' || $2::text left join pg_index xi on xi.indexrelid = x.oid
  where n.nspname = $1 and p.relname = 'message' and not i.inhdetachpending and not exists (
    select from pg_inherits j join pg_index o on o.indexrelid = j.inhrelid join pg_class l on l.oid = j.inhparent
    where o.indrelid = c.oid and l.relname = $3::text)
  order by 1 desc`;

export async function ensureDayIndexes(connection: Connection, s: string): Promise<void> {
  const run = (text: string, values: unknown[] = []) => connection.rows("index a day", text, values, { patienceMs: PATIENCE_MS });
  for (const { suffix, whole, on } of INDEXES) {
    for (const [day, made, invalid] of await run(missingSql, [s.replaceAll('"', ""), suffix, whole])) {
      if (invalid === "true") await run(`drop index concurrently if exists ${s}.${made}`);
      await run(`create index concurrently if not exists ${day}_${suffix} on ${s}.${day} ${on}`);
      await run(`alter index ${s}.${whole} attach partition ${s}.${day}_${suffix}`);
    }
  }
}
