with
    l as materialized (
      select l.id, y.ends, y.g from SCHEMA.lease l join unnest($1::bigint[], $2::uuid[], $3::boolean[]) with ordinality y(id, token, ends, g)
        on y.id = l.id and y.token = l.token order by l.id for no key update of l),
    x as materialized (
      select x.*, l.id as lease_id,
        case x.kind when 4 then 'infinity'::timestamptz when 2 then statement_timestamp() + x.delay_ms * interval '1 ms' when 5 then statement_timestamp() end as again
      from l join unnest($4::uuid[], $5::int[], $6::smallint[], $7::smallint[], $8::smallint[], $9::boolean[], $10::bigint[], $11::int[], $12::smallint[],
        $13::boolean[], $14::smallint[], $15::boolean[], $16::int[], $17::text[], $18::text[], $19::text[], $20::int[])
        x(id, g, kind, n, outcome, counted, delay_ms, lane_id, base, ordered, suspicion, blocks, ms, code, error, reason, bytes) on x.g = l.g),
    a as (insert into SCHEMA.attempt (message_id, lease_id, n, outcome, counted, at, duration_ms, next_due, code, error)
      select id, lease_id, n, outcome, counted, statement_timestamp(), ms, case when kind = 2 then again end, code, error from x where kind <> 5
      on conflict do nothing returning message_id),
    z as materialized (
      select x.*, case when counted then n else n - 1 end as attempts from x where kind <> 5 and coalesce(id in (select message_id from a), false)
      union all
      select x.*, n - 1 from x where kind = 5 and not exists (select from SCHEMA.attempt p where p.message_id = x.id and p.lease_id = x.lease_id)),
    f as (delete from SCHEMA.order_lock k using z where z.ordered and k.id = z.id and not (z.kind = 3 and z.blocks) returning k.lane_id, k.ordering_key, k.id),
    ro as (insert into SCHEMA.ready_ordered (lane_id, ordering_key, id, due, attempts, base, suspicion)
      select f.lane_id, f.ordering_key, z.id, z.again, z.attempts, z.base, z.suspicion from z join f on f.id = z.id where z.ordered and z.kind in (2, 4, 5)),
    r as (insert into SCHEMA.ready (due, id, lane_id, attempts, base, bytes)
      select again, id, lane_id, attempts, base, bytes from z where kind in (2, 4, 5) and not ordered),
    h as (insert into SCHEMA.held (id, reason, at) select id, reason, statement_timestamp() from z where kind = 4
      on conflict (id) do update set reason = excluded.reason, at = excluded.at),
    d as (insert into SCHEMA.dead_letter (id, lane_id, attempts, died_at, code, error)
      select id, lane_id, attempts, statement_timestamp(), code, error from z where kind = 3
      on conflict (id) do update set resolution = 0, attempts = excluded.attempts, died_at = excluded.died_at, died_xid = excluded.died_xid, settled_at = null,
        code = excluded.code, error = excluded.error, revision = dead_letter.revision + 1),
    e as (delete from SCHEMA.lease using l where lease.id = l.id and l.ends),
    u as (update SCHEMA.lease t set
        ids = array(select v.id from unnest(t.ids) with ordinality v(id, o) where v.id <> all (q.gone) order by o),
        attempts = array(select v.n from unnest(t.ids, t.attempts) with ordinality v(id, n, o) where v.id <> all (q.gone) order by o),
        bases = array(select v.n from unnest(t.ids, t.bases) with ordinality v(id, n, o) where v.id <> all (q.gone) order by o),
        lanes = array(select v.n from unnest(t.ids, t.lanes) with ordinality v(id, n, o) where v.id <> all (q.gone) order by o)
      from (select lease_id, array_agg(id) as gone from z where kind = 5 group by lease_id) q join l on l.id = q.lease_id and not l.ends
      where t.id = q.lease_id)
    select z.id::text, z.g::text, case when z.ordered then (select f.lane_id::text from f where f.id = z.id) end from z
