/**
 * How sets of messages are summed up: counts, and sums of hashes, which do not depend on the order and find ids that were swapped at equal
 * counts. 64 bits of md5, because it is the same on every version and machine; the sums are exact numbers of any size.
 */

/** Of an id. */
export const hashOf = (id: string): string => `('x' || left(md5(${id}::text), 16))::bit(64)::bigint`;

/** Of an id and what it carries, so that two payloads that changed places are found as well. */
export const bodyOf = (id: string, payload: string): string =>
  `('x' || left(md5(${id}::text || ${payload}), 16))::bit(64)::bigint`;

export const hourOf = (column: string): string => `date_trunc('hour', ${column}, 'UTC')`;

/** The transaction that wrote the row, with the rounds that the server's own numbers have made. `x.n`: what the next one would be. */
export const xidOf = (row: string): string => `(x.n - ((x.n - ${row}.xmin::text::bigint) & 4294967295))`;
export const NEXT_XID = "x as materialized (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as n)";

/** 1 delivered, 2 resolved, 3 discarded, 0 none of them; of an id, with `d` its dead letter, or none. */
export const endedOf = (s: string, id: string): string => `case
    when (select a.message_id from ${s}.attempt a where a.message_id = ${id} and a.outcome in (1, 2) limit 1) is not null then 1
    when d.resolution = 1 then 2 when d.resolution = 2 then 3 else 0 end`;

/** What a relation of messages adds to which bucket. The buckets are there already. `more`: columns of it that are carried on. */
export const judged = (
  s: string,
  rows: string,
  more = "",
): string => `select m.id${more}, b.id as bucket, ${hashOf("m.id")} as hash,
    ${bodyOf("m.id", "m.payload")} as body, case when b.money_field is not null then ${s}.money_of(m.payload, b.money_field) end as money,
    b.money_field is not null as priced, ${endedOf(s, "m.id")} as ended
  from ${rows} m join ${s}.lane l on l.id = m.lane_id join ${s}.topic t on t.id = l.topic_id
  join ${s}.conservation_bucket b on b.topic = t.name and b.tenant = l.tenant and b.hour = ${hourOf("m.created_at")}
  left join ${s}.dead_letter d on d.id = m.id`;

/** Makes the buckets of a relation of messages. Which field is the money is the bucket's own from then on. */
export const makeBuckets = (
  s: string,
  rows: string,
): string => `insert into ${s}.conservation_bucket (topic, tenant, hour, money_field)
  select distinct t.name, l.tenant, m.hour, t.definition::json ->> 'moneyField'
  from (select distinct lane_id, ${hourOf("created_at")} as hour from ${rows} m) m
  join ${s}.lane l on l.id = m.lane_id join ${s}.topic t on t.id = l.topic_id
  order by 1, 2, 3 on conflict do nothing`;
