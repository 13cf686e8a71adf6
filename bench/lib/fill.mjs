/**
 * Fills the tables of a PostgreSQL store directly, for questions about size: enqueueing a million messages one batch after the other would
 * take minutes, this takes seconds. The rows are what the store's own statements would have written.
 */

/** An id of version 7 whose time lies `i` tenths of a millisecond after `fromMs`. */
const idSql = (fromMs) =>
  `(lpad(to_hex(${fromMs} + i / 10), 12, '0') || '7' || lpad(to_hex(i % 4096), 3, '0') || '8' || substr(md5(i::text), 1, 15))::uuid`;

/**
 * `count` messages over every topic that exists and `tenants` tenants each. `shares`: of a hundred messages, how many are delivered and dead;
 * the rest is pending. Dead letters are open, resolved and discarded in turn. Newest last; `fromMs`: the time of the first id.
 */
export async function fill(
  client,
  schema,
  { count, tenants, delivered = 0, dead = 0, fromMs, payload = '{"n":1}', keyed = false },
) {
  const s = `"${schema}"`;
  await client.query("set synchronous_commit = off");
  await client.query(`insert into ${s}.lane (topic_id, tenant) select t.id, 'tenant-' || n from ${s}.topic t, generate_series(1, ${tenants}) n
    where not t.deleted on conflict do nothing`);
  await client.query(`create temp table filled as with l as (select id, topic_id, tenant, row_number() over (order by id) - 1 as n from ${s}.lane where kind = 0 and priority = 0)
    select i, ${idSql(fromMs)} as id, l.id as lane_id, l.topic_id, l.tenant, (i + 37 * (i / (select count(*) from l))) % 100 as share
    from generate_series(0::bigint, ${count - 1}) i join l on l.n = i % (select count(*) from l)`);
  await client.query(
    `insert into ${s}.message (id, lane_id, payload, key) select id, lane_id, $1, case when $2 then 'key-' || i end from filled`,
    [payload, keyed],
  );
  if (keyed) {
    await client.query(
      `insert into ${s}.dedupe (topic_id, tenant, key, id, hash) select topic_id, tenant, 'key-' || i, id, md5($1)::uuid from filled`,
      [payload],
    );
  }
  await client.query(
    `insert into ${s}.ready (due, id, lane_id, bytes) select now() + i * interval '1 us' - interval '1 hour', id, lane_id, $1::int from filled
    where share >= ${delivered + dead}`,
    [Buffer.byteLength(payload)],
  );
  await client.query(
    `insert into ${s}.attempt (message_id, lease_id, n, outcome) select id, -1, 1, case when share < ${delivered} then 1 else 4 end from filled where share < ${delivered + dead}`,
  );
  await client.query(`insert into ${s}.dead_letter (id, lane_id, attempts, resolution, settled_at, code, error)
    select id, lane_id, 1, i % 3, case when i % 3 > 0 then now() end, 'http_422', 'refused' from filled where share >= ${delivered} and share < ${delivered + dead}`);
  await client.query("drop table filled");
  await client.query("reset synchronous_commit");
  for (const table of ["lane", "message", "dedupe", "ready", "attempt", "dead_letter"])
    await client.query(`vacuum analyze ${s}.${table}`);
}
