/**
 * What is kept of messages that go: each as one JSON object with its payload as exact text, every attempt and its dead letter, in the
 * transaction that deletes them.
 */
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX, chainLock, chainLockSql, chunkSql } from "../../shared/archive-sql.ts";
import type { PruneArchive, SettledClass } from "../../store.ts";
import type { Queryable } from "../connection.ts";

export type Chunk = Parameters<PruneArchive["told"]>[0];

const IS: Readonly<Record<SettledClass, (s: string) => string>> = {
  dead: (s) => `exists (select from ${s}.dead_letter d where d.id = m.id and d.resolution in (1, 2))`,
  delivered: (s) => `not exists (select from ${s}.dead_letter d where d.id = m.id and d.resolution in (1, 2))`,
};

const linesSql = (s: string, of: SettledClass, rows: string): string => `select m.id as sort, m.id::text, m.created_at as at,
  json_build_object('id', m.id, 'topic', t.name, 'tenant_id', nullif(l.tenant, ''), 'key', m.key, 'ordering_key', m.ordering_key, 'priority', l.priority,
    'created_at', m.created_at, 'schema_version', m.schema_version, 'traceparent', m.traceparent, 'payload', m.payload,
    'attempts', (select coalesce(json_agg(json_build_object('n', a.n, 'at', a.at, 'outcome', a.outcome, 'ms', a.duration_ms, 'code', a.code,
      'error', a.error) order by a.at, a.lease_id), '[]') from ${s}.attempt a where a.message_id = m.id),
    'dead_letter', (select json_build_object('died_at', d.died_at, 'settled_at', d.settled_at, 'generation', d.generation, 'code', d.code, 'error', d.error,
      'resolution', case d.resolution when 1 then 'resolved' when 2 then 'discarded' when 3 then 'replayed' else 'open' end)
      from ${s}.dead_letter d where d.id = m.id))::text as line
  from ${rows} m left join ${s}.lane l on l.id = m.lane_id left join ${s}.topic t on t.id = l.topic_id where ${IS[of](s)}`;

const FIRST = "00000000-0000-0000-0000-000000000000";

/** `rows`: a relation with the columns of `message`, of any size. The chunks that were made. */
export async function archiveMessages(client: Queryable, s: string, of: SettledClass, rows: string) {
  const chunks: Chunk[] = [];
  for (let after: string | null = FIRST; after !== null; ) {
    const found = await client.query(
      `select id::text as id from (select m.id, sum(octet_length(m.payload)) over (order by m.id) - octet_length(m.payload) as before from (
        select m.id, m.payload from ${rows} m where m.id > $1::uuid and ${IS[of](s)} order by m.id limit ${CHUNK_ROWS_MAX}) m) x
      where before < ${CHUNK_BYTES_MAX} order by x.id`,
      [after],
    );
    const ids = found.rows.map((row) => (row as { id: string }).id);
    after = ids.at(-1) ?? null;
    if (after === null) break;
    chunks.push(
      ...(await archiveChunk(client, s, of, `(select m.* from ${rows} m where m.id = any ('{${ids.join(",")}}'::uuid[]))`)),
    );
  }
  return chunks;
}

async function archiveChunk(client: Queryable, s: string, of: SettledClass, rows: string) {
  await client.query(chainLockSql, [chainLock(s, of)]);
  const made = await client.query(chunkSql(s, linesSql(s, of, rows)), [of, true]);
  return (made.rows as { rows: string; bytes: string }[]).map(
    (one): Chunk => ({
      class: of,
      rows: Number(one.rows),
      bytes: Number(one.bytes),
    }),
  );
}
