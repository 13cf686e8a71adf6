with
  h as materialized (
    select h.lane_id, h.ordering_key, h.id from unnest($1::int[], $2::int[], $3::text[]) l(lane, n, after) cross join lateral (
      with recursive k(ordering_key, depth) as (
        (select r.ordering_key, 1 from SCHEMA.ready_ordered r where r.lane_id = l.lane and r.ordering_key > l.after collate "C" order by r.ordering_key limit 1)
        union all
        select (select r.ordering_key from SCHEMA.ready_ordered r where r.lane_id = l.lane and r.ordering_key > k.ordering_key order by r.ordering_key limit 1), depth + 1
        from k where k.ordering_key is not null and depth < 1000)
      select h.* from k cross join lateral (
        select * from SCHEMA.ready_ordered r where r.lane_id = l.lane and r.ordering_key = k.ordering_key order by r.id limit 1) h
      where k.ordering_key is not null and h.due <= statement_timestamp()
        and not exists (select from SCHEMA.order_lock o where o.lane_id = l.lane and o.ordering_key = k.ordering_key)
      limit l.n) h),
  g as materialized (
    select r.* from SCHEMA.ready_ordered r join h using (lane_id, ordering_key, id) order by r.lane_id, r.ordering_key for update of r skip locked),
  -- suspects of killing workers are not mixed with others: the oldest head says whose turn it is
  e as materialized (select suspicion from g order by id limit 1),
  t as (select g.*, row_number() over (order by g.lane_id, g.ordering_key) as o from g join e using (suspicion)
    order by g.lane_id, g.ordering_key limit (select case suspicion when 0 then null when 1 then 8 else 1 end from e)),
  w as materialized (
    select t.id, t.lane_id, t.due, t.attempts, t.base, t.suspicion, t.o, coalesce(m.key, k.key) as key, coalesce(m.ordering_key, k.ordering_key) as ordering_key, coalesce(m.payload, k.payload) as payload, coalesce(m.traceparent, k.traceparent) as traceparent, coalesce(m.schema_version, k.schema_version) as schema_version, coalesce(m.handed_down, k.handed_down) as handed_down,
      sum(octet_length(coalesce(m.payload, k.payload))) over (order by t.o rows unbounded preceding) as bytes
    from t left join lateral (select m.id, key, ordering_key, payload, traceparent, schema_version, handed_down from SCHEMA.message m where m.id = t.id limit 1) m on true
    left join lateral (select key, ordering_key, payload, traceparent, schema_version, handed_down from SCHEMA.message_kept k where m.id is null and k.id = t.id limit 1) k on true),
  lk as (insert into SCHEMA.order_lock (lane_id, ordering_key, id)
    select lane_id, ordering_key, id from w where ($7::boolean and o = 1) or coalesce(bytes, 0) <= $6::bigint order by lane_id, ordering_key
    on conflict do nothing returning id),
  b as materialized (select w.*, row_number() over (order by w.o) as p from w join lk using (id) order by w.o),
  d as (delete from SCHEMA.ready_ordered r using b where r.id = b.id),
  n as (insert into SCHEMA.lease (owner, until, suspicion, ids, attempts, bases, lanes)
    select $4::text, statement_timestamp() + $5::int * interval '1 ms', max(suspicion), array_agg(id), array_agg((attempts + 1)::smallint), array_agg(base), array_agg(lane_id)
    from b having count(*) > 0 returning id, token)
  select null::uuid, null::int, null::int, null::smallint, id::text, token::text, null, null, null::int, null::boolean, null::smallint from n where set_config('synchronous_commit', 'off', true) is not null
  union all
  (select b.id, b.lane_id, b.attempts + 1, b.base, key, ordering_key, payload, traceparent, schema_version, handed_down, b.suspicion from b order by b.p)
