/**
 * Fills what conservation remembers, for questions about size: hours that were sealed long ago, as accounts with their chain of seals and not
 * as messages, and messages that live.
 */

/** `headOf` is the store's own. The chain goes on from where the store's first pass left it. */
export async function fillSealed(client, schema, headOf, { sealed, topics, tenants, hours }) {
  const s = `"${schema}"`;
  const buckets = topics.length * tenants * hours;
  const n = Math.floor(sealed / buckets);
  await client.query("set synchronous_commit = off");
  const { rows } = await client.query(
    `insert into ${s}.conservation_bucket (topic, tenant, hour, accepted_n, accepted_hash, accepted_body, delivered_n, settled_hash, archived_n, archived_hash, archived_body)
    select t, 'tenant-' || k, date_trunc('hour', now(), 'UTC') - (h + 72) * interval '1 hour', $4, h * 7 + k, h, $4, h * 7 + k, $4, h * 7 + k, h
    from unnest($1::text[]) t, generate_series(1, $2::int) k, generate_series(1, $3::int) h
    returning id, topic, tenant, extract(epoch from hour)::bigint::text as hour, accepted_hash::text as hash, accepted_body::text as body`,
    [topics.map(({ name }) => name), tenants, hours, n],
  );
  let head = "";
  const heads = rows.map(({ id, topic, tenant, hour, hash, body }, i) => {
    head = headOf(head, [String(i + 1), String(id), topic, tenant, hour, String(n), hash, body, "0"]);
    return head;
  });
  for (let from = 0; from < rows.length; from += 5_000) {
    const part = rows.slice(from, from + 5_000).map(({ id }, i) => [from + i + 1, id, heads[from + i]]);
    const columns = [0, 1, 2].map((column) => part.map((row) => row[column]));
    await client.query(
      `with x as (select * from unnest($1::bigint[], $2::int[], $3::text[]) x(no, bucket, head)),
      u as (update ${s}.conservation_bucket b set sealed = x.no from x where b.id = x.bucket)
      insert into ${s}.conservation_seal (no, bucket, topic, tenant, hour, n, hash, body, money, head)
      select x.no, b.id, b.topic, b.tenant, b.hour, b.accepted_n, b.accepted_hash, b.accepted_body, b.accepted_money, x.head
      from x join ${s}.conservation_bucket b on b.id = x.bucket`,
      columns,
    );
  }
  await client.query(`update ${s}.conservation set seal_no = $1, head = $2, accepted_n = accepted_n + $3`, [
    rows.length,
    head,
    n * buckets,
  ]);
  await client.query("reset synchronous_commit");
  for (const table of ["bucket", "seal"]) await client.query(`vacuum analyze ${s}.conservation_${table}`);
  return { buckets, messages: n * buckets };
}

/** Messages of the last twenty hours that wait for tomorrow, two of a hundred dead, over all topics and tenants. */
export async function fillLive(client, schema, { live, tenants }) {
  const s = `"${schema}"`;
  await client.query("set synchronous_commit = off");
  await client.query(`insert into ${s}.lane (topic_id, tenant) select t.id, 'tenant-' || n from ${s}.topic t, generate_series(1, ${tenants}) n
    where not t.deleted on conflict do nothing`);
  const fromMs = Date.now() - 20 * 3_600_000;
  await client.query(`create temp table filled as with l as (select id, row_number() over (order by id) - 1 as n, count(*) over () as all from ${s}.lane where tenant <> '')
    select i, to_timestamp(t.ms / 1000.0) as at, (lpad(to_hex(t.ms), 12, '0') || '7' || lpad(to_hex(i % 4096), 3, '0') || '8' || substr(md5(i::text), 1, 15))::uuid as id, l.id as lane_id
    from generate_series(0::bigint, ${live - 1}) i cross join lateral (select ${fromMs} + i * 72000000 / ${live} as ms) t join l on l.n = i % l.all`);
  await client.query(`insert into ${s}.message (id, created_at, lane_id, payload)
    select id, at, lane_id, '{"order":' || i || ',"amount_micro":' || i % 1000 || ',"text":"' || repeat(md5(i::text), 6) || '"}' from filled`);
  await client.query(
    `insert into ${s}.ready (due, id, lane_id, bytes) select now() + interval '1 day' + i * interval '1 ms', id, lane_id, 250 from filled where i % 50 > 0`,
  );
  await client.query(
    `insert into ${s}.attempt (message_id, lease_id, n, outcome) select id, -1, 1, 4 from filled where i % 50 = 0`,
  );
  await client.query(
    `insert into ${s}.dead_letter (id, lane_id, attempts, code, error) select id, lane_id, 1, 'http_422', 'refused' from filled where i % 50 = 0`,
  );
  await client.query("drop table filled");
  await client.query("reset synchronous_commit");
  for (const table of ["lane", "message", "ready", "attempt", "dead_letter"]) await client.query(`vacuum analyze ${s}.${table}`);
}
