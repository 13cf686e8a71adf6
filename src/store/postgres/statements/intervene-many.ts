/**
 * What is done to many dead letters at once, as an intervention does it to one: back to where they are due with a new budget, or ended by
 * a person's word. Only those that still stand as named are touched; each leaves its line of provenance. Rows are named by arrays and
 * not joined to them, so no plan, however old, reads a table for a few of its rows.
 */

import type { Named, Run } from "../../home.ts";
import { clockSql } from "../../shared/clock-sql.ts";
import type { At } from "../../store.ts";
import { RESOLUTION_CODES } from "../db.ts";

/** $1 ids, $2 revisions, $3 actor, $4 reason. The index gives them in the order of their ids: two of these never wait in a circle. */
const STANDS = "d.id = any ($1::uuid[]) and d.resolution = 0 and d.revision = ($2::int[])[array_position($1::uuid[], d.id)]";

const freed = (s: string) =>
  `f as (delete from ${s}.order_lock k where k.id = any ($1::uuid[]) and exists (select from d where d.id = k.id) returning k.lane_id)`;

const noted = (s: string, clock: string, action: string) =>
  `v as (insert into ${s}.provenance (at, message_id, actor, action, reason) select ${clock}, id, $3::text, '${action}', $4::text from d)`;

const replaySql = (
  s: string,
  clock: string,
) => `with d as (update ${s}.dead_letter d set resolution = ${RESOLUTION_CODES.replayed}, generation = d.generation + 1, revision = d.revision + 1,
    settled_at = ${clock} where ${STANDS} returning d.id, d.lane_id, d.attempts, coalesce(d.seq, 0) as seq),
  ${freed(s)},
  m as (select d.id, d.attempts, d.seq, b.bytes, b.ordering_key, l.kind, case when l.kind in (0, 3) then l.id else coalesce(p.id, l.id) end as lane_id
    from d join ${s}.lane l on l.id = d.lane_id
    left join ${s}.lane p on p.topic_id = l.topic_id and p.tenant = l.tenant and p.priority = l.priority and p.kind = 0
    left join lateral (select ordering_key, octet_length(payload) as bytes from ${s}.message where id = d.id
      union all select ordering_key, octet_length(payload) from ${s}.message_kept where id = d.id limit 1) b on true),
  r as (insert into ${s}.ready (due, id, lane_id, attempts, base, bytes)
    select ${clock}, id, lane_id, attempts, attempts, bytes from m where kind <> 3 returning lane_id),
  o as (insert into ${s}.ready_ordered (lane_id, ordering_key, id, seq, due, attempts, base)
    select lane_id, ordering_key, id, seq, ${clock}, attempts, attempts from m where kind = 3 returning lane_id),
  ${noted(s, clock, "replay")}
  select distinct lane_id::text from (select lane_id from r union all select lane_id from o) x`;

const resolveSql = (
  s: string,
  clock: string,
) => `with d as (update ${s}.dead_letter d set resolution = ${RESOLUTION_CODES.resolved}, revision = d.revision + 1, settled_at = ${clock}
    where ${STANDS} returning d.id, d.lane_id),
  ${freed(s)},
  ${noted(s, clock, "resolve")}
  select distinct lane_id::text from f`;

/** Returns the lanes where something became claimable. */
export async function interveneIn(
  s: string,
  run: Run,
  action: "replay" | "resolve",
  named: readonly Named[],
  by: { readonly actor: string; readonly reason: string | null },
  { now }: At,
): Promise<string[]> {
  if (named.length === 0) return [];
  const clock = clockSql(now);
  const text = action === "replay" ? replaySql(s, clock) : resolveSql(s, clock);
  const name = now ? undefined : `mg_redrive_${action}`;
  const values = [named.map((one) => one.id), named.map((one) => one.revision), by.actor, by.reason];
  return (await run(text, values, { name })).map((row) => row[0] as string);
}
