/**
 * Fills the recovery engine's tables directly: 100,000 groups take hours to be made by failures, this takes minutes. A few groups hold
 * much and most hold little, as failures do; three groups in ten have open messages.
 */

/** `groups`, `occurrences` over them (a fifth of them dead letters of ours), a candidate and a half per group, one redrive of `items` and `redrives` small ones. */
export async function fillRecovery(client, schema, { groups, occurrences, items, redrives }) {
  const s = `"${schema}"`;
  const run = (text) => client.query(text);
  await run("set synchronous_commit = off; select setseed(0.5)");
  await run(`insert into ${s}.lane (topic_id, tenant) select t.id, 'tenant-' || n from ${s}.topic t, generate_series(0, 49) n
    where not t.deleted on conflict do nothing`);
  await run(`insert into ${s}.recovery_group (fingerprint, match_id, topic, sink, code, template, first_at, last_at)
    select 'f' || i, gen_random_uuid()::text, 'shop/topic' || i % 20, 'http', 'CODE_' || i % 40, 'order <*> was refused by ' || repeat(md5(i::text), 3),
      now() - i * interval '10 s' - interval '1 day', now() - i * interval '10 s' from generate_series(1, ${groups}) i`);
  await run(`create temp table filled as select i, g.first + floor(${groups} * random() ^ 3)::bigint as group_id,
      case when i % 5 = 0 then gen_random_uuid() end as id from (select min(id) as first from ${s}.recovery_group) g, generate_series(1, ${occurrences}) i`);
  await run(`insert into ${s}.recovery_occurrence (group_id, at, request_key, hash, source, message_id, generation, attempts, tenant_id, code, text)
    select group_id, now() - (${occurrences} - i) * interval '100 ms', 'k' || i, md5(i::text)::uuid, case when id is null then 'api' else 'message' end, id,
      case when id is not null then 0 end, case when id is not null then 3 end, 'tenant-' || i % 50, 'CODE', 'order ' || i || ' was refused by the ledger'
    from filled`);
  await run(
    `update ${s}.recovery_group g set occurrences = x.n from (select group_id, count(*) as n from filled group by 1) x where x.group_id = g.id`,
  );
  await run(`insert into ${s}.dead_letter (id, lane_id, attempts, resolution, died_at, settled_at, code, error, ingested_attempts, group_id, grouped_xid)
    select f.id, l.id, 3, case when group_id % 10 < 3 then 0 else 1 end, now() - (${occurrences} - i) * interval '100 ms',
      case when group_id % 10 < 3 then null else now() end, 'CODE', 'refused', 3, group_id, pg_current_xact_id()
    from filled f join (select id, row_number() over (order by id) - 1 as n, count(*) over () as all from ${s}.lane) l on l.n = (f.i / 5) % l.all where f.id is not null`);
  await run("drop table filled");
  const evaluation = `json_build_object('text', repeat(md5(g.id::text), 20))::text`;
  for (const [round, share] of [
    [1, 1],
    [2, 2],
  ]) {
    await run(`insert into ${s}.recovery_candidate (group_id, round, created_at, updated_at, decision, evaluation_status, evaluated_at, action, confidence,
        evaluation, group_version, execution_status)
      select g.id, ${round}, now(), now(), case when g.id % 10 < 7 then 'pending' else 'approved' end,
        case when g.id % 1000 = 0 then 'failed' else 'evaluated' end, now(), (array['retry_exponential', 'circuit_breaker', 'notify_ops'])[g.id % 3 + 1],
        random(), ${evaluation}, 1, case when g.id % 10 < 7 then 'pending' when g.id % 10 = 7 then 'failed' else 'succeeded' end
      from ${s}.recovery_group g where g.id % ${share} = 0`);
  }
  await run(`insert into ${s}.redrive (id, request_hash, status, mode, actor, reason, selection, plan, created_at)
    select gen_random_uuid(), '', case when i % 100 = 0 then 'paused' else 'done' end, 'replay', 'ann', 'size', '{"limit":1,"generationMax":5}', '{}', now()
    from generate_series(1, ${redrives}) i`);
  const id = "ffffffff-0000-7000-8000-000000000001";
  await run(`insert into ${s}.redrive (id, request_hash, status, mode, actor, reason, selection, plan, created_at, selected, healed, failed)
    values ('${id}', '', 'done', 'replay', 'ann', 'size', '{"limit":1,"generationMax":5}', '{}', now(), ${items}, ${items - Math.floor(items / 1000)}, ${Math.floor(items / 1000)})`);
  await run(`insert into ${s}.redrive_item (redrive_id, n, message_id, generation, revision, state, sent_at, ended_at)
    select '${id}', n, gen_random_uuid(), 0, 0, case when n % 1000 = 0 then 3 else 2 end, now(), now() from generate_series(1, ${items}) n`);
  await run("reset synchronous_commit");
  return { redriveId: id };
}

/** As autovacuum leaves them. */
export async function settleRecovery(client, schema) {
  for (const table of ["group", "occurrence", "candidate", "open", "tally"])
    await client.query(`vacuum analyze "${schema}".recovery_${table}`);
  for (const table of ["dead_letter", "redrive", "redrive_item", "lane"])
    await client.query(`vacuum analyze "${schema}".${table}`);
}
