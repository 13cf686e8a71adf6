/**
 * LIST, the SQL: where the newest messages of a filter are found, each part read from an index in its order and cut where the page
 * ends, so that a page costs the same at a thousand messages and at ten million. `$1` is the cursor, `$2` how many, `$3` the lanes.
 */
import type { Status } from "../../../message/message.ts";

const NEWEST = "order by id desc limit $2::int";
const newest = (parts: readonly string[]): string =>
  `select id::text from (${parts.map((part) => `(${part})`).join(" union all ")}) c ${NEWEST}`;

/** The resolutions of what is dead: 3 is a dead letter that was replayed. */
const DEAD = [0, 1, 2] as const;

/** Of any lane. */
export function newestOf(s: string, status: Status | "any", resolution?: number): string {
  const table = (name: string) => `select id from ${s}.${name} where id < $1 ${NEWEST}`;
  switch (status) {
    case "any":
      return newest([table("message"), table("message_kept")]);
    case "pending":
      return newest([table("ready"), table("ready_ordered")]);
    case "processing":
      return `select id::text from (${processing(s)}) c ${NEWEST}`;
    case "delivered":
      return newest([
        `select message_id as id from ${s}.attempt where message_id < $1 and outcome in (1, 2) order by message_id desc limit $2::int`,
      ]);
    case "dead":
      return newest(
        (resolution === undefined ? DEAD : [resolution]).map(
          (one) => `select id from ${s}.dead_letter where id < $1 and resolution = ${one} ${NEWEST}`,
        ),
      );
  }
}

/** As many as are in flight, which is a worker's concurrency and no matter of size. */
const processing = (
  s: string,
  lanes = "",
) => `select u.id from ${s}.lease l cross join lateral unnest(l.ids, l.lanes) u(id, lane_id)
  where u.id < $1${lanes} and not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id)`;

/** Of some lanes: only the lanes with the newest first messages can have a part in the page, and each of them at most a page. */
export function newestOfLanes(s: string, status: "any" | "processing" | "dead", resolution?: number): string {
  if (status === "processing") {
    return `select id::text from (${processing(s, " and u.lane_id = any ($3::int[])")}) c ${NEWEST}`;
  }
  const part = (table: string, more = "") => {
    const from = `from ${s}.${table} where lane_id = l.lane and id < $1${more} order by id desc`;
    return `select m.id from (
        select l.lane, (select id ${from} limit 1) as first from unnest($3::int[]) l(lane) order by first desc nulls last limit $2::int) l
      cross join lateral (select id ${from} limit $2::int) m where l.first is not null ${NEWEST}`;
  };
  if (status === "any") return newest([part("message"), part("message_kept")]);
  return newest((resolution === undefined ? DEAD : [resolution]).map((one) => part("dead_letter", ` and resolution = ${one}`)));
}

/** What is pending in some lanes, if that is at most `$4`: their number and the newest, from an index alone. */
export const pendingOfLanes = (s: string): string => `with p as materialized (
    select id from (select id from ${s}.ready where lane_id = any ($3::int[]) limit $4::int + 1) r
    union all select id from (select id from ${s}.ready_ordered where lane_id = any ($3::int[]) limit $4::int + 1) o)
  select null::text, (count(*) <= $4::int)::text from p
  union all select * from (select id::text, null::text from p where id < $1 ${NEWEST}) n`;

/** Of these candidates, those in a state; `$1`: ids. */
export function inState(s: string, status: Status | "any", resolution?: number): string {
  const dead = resolution === undefined ? "d.resolution < 3" : `d.resolution = ${resolution}`;
  const states: Record<Status | "any", string> = {
    any: "true",
    pending: `(exists (select from ${s}.ready r where r.id = c.id) or exists (select from ${s}.ready_ordered r where r.id = c.id))`,
    processing: `exists (select from ${s}.lease l where c.id = any (l.ids)
      and not exists (select from ${s}.attempt a where a.message_id = c.id and a.lease_id = l.id))`,
    delivered: `exists (select from ${s}.attempt a where a.message_id = c.id and a.outcome in (1, 2))`,
    dead: `exists (select from ${s}.dead_letter d where d.id = c.id and ${dead})`,
  };
  return `select c.id::text from unnest($1::uuid[]) c(id) where ${states[status]} order by c.id desc`;
}

/** The newest of all that belong to these lanes, as far as the `$4` newest of all hold them. */
export const newestAmongAll = (s: string): string => `with w as materialized (
    select id, lane_id from ((select id, lane_id from ${s}.message where id < $1 order by id desc limit $4::int)
      union all (select id, lane_id from ${s}.message_kept where id < $1 order by id desc limit $4::int)) c order by id desc limit $4::int)
  select id::text from w where lane_id = any ($3::int[]) ${NEWEST}`;

/** Whose key it is, in the topics and tenants that there are: one look each. `$1`: cursor, `$2`: topic, `$3`: tenant, `$4`: key. */
export const ofKey = (s: string): string => `select d.id::text from (
    select distinct l.topic_id, l.tenant from ${s}.lane l join ${s}.topic t on t.id = l.topic_id
    where ($2::text is null or t.name = $2) and ($3::text is null or l.tenant = $3)) l
  cross join lateral (select id from ${s}.dedupe d where d.topic_id = l.topic_id and d.tenant = l.tenant and d.key = $4::text limit 1) d
  where d.id < $1 order by d.id desc`;
