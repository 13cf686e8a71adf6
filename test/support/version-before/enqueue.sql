with r as materialized (select * from unnest($1::text::uuid[], $2::text::int[], string_to_array($3::text, E'\x1e'), string_to_array($4::text, E'\x1e', '')) as r(id, lane_id, payload, ordering_key)),
m as (insert into SCHEMA.message (created_at, id, lane_id, payload, ordering_key)
    select statement_timestamp(), id, lane_id, payload, ordering_key from r where true),
o as (insert into SCHEMA.ready_ordered (lane_id, ordering_key, id, due)
      select lane_id, ordering_key, id, statement_timestamp() from r where ordering_key is not null and (true)),
q as (insert into SCHEMA.ready (due, id, lane_id, bytes)
    select statement_timestamp(), id, lane_id, octet_length(payload) from r where ordering_key is null and (true))
    select null::text as a, (select pg_notify('SCHEMA_wake', '') from SCHEMA.waiter w where w.until > statement_timestamp() limit 1)::text as b
