/**
 * RETIRE: deletes lanes that had nothing for a day, a whole family (topic, tenant, priority) at a time, so that a number that is there has
 * its siblings, too. Bounded steps with each upkeep, round and round. The lanes' table is locked for the deletion alone: a transaction that
 * has enqueued has read it, so nothing can be on its way into a lane that goes; a later enqueue finds it gone and makes it again.
 */

import { clockSql } from "../../shared/clock-sql.ts";
import { hasSqlState } from "../../shared/sql-state.ts";
import type { Queryable } from "../connection.ts";
import type { Db } from "../db.ts";

const IDLE_MS = 24 * 3_600_000;
/** After an upgrade: a process of the version before does not ask whether its lanes are still there. */
const UPGRADED_MS = 7 * 24 * 3_600_000;
const LOOKED_AT_MAX = 1_000;
const RETIRED_MAX = 200;
/** How long others may have to wait behind us; after that it is left for the next time. */
const LOCK_WAIT = "50ms";

/** Its order makes each one index descent, whatever sizes the planner assumes. */
const holdsSomething = (s: string, lane: string) =>
  [
    ["message", "m.id"],
    ["message_kept", "m.id"],
    ["ready", "m.due, m.id"],
    ["ready_ordered", "m.ordering_key, m.seq, m.id"],
    ["order_lock", "m.ordering_key"],
    ["dead_letter", "m.resolution, m.id"],
  ]
    .map(([table, order]) => `(select true from ${s}.${table} m where m.lane_id = ${lane} order by ${order} limit 1) is not null`)
    .concat(`${lane} in (select unnest(e.lanes) from ${s}.lease e)`)
    .join("\n    or ");

/** The lanes of some families, and which of the families hold something. `from`: a select of lanes. */
const families = (s: string, from: string) => `f as materialized (select distinct topic_id, tenant, priority from (${from}) x),
  l as materialized (select l.* from f join ${s}.lane l using (topic_id, tenant, priority)),
  busy as materialized (select distinct l.topic_id, l.tenant, l.priority from l where ${holdsSomething(s, "l.id")}),
  empty as materialized (select l.id from l where not exists (select from busy b where (b.topic_id, b.tenant, b.priority) = (l.topic_id, l.tenant, l.priority)))`;

/** $1 the lane to begin after. Notes which lanes have nothing since now, or no longer; answers with where the walk came to. */
const noteSql = (s: string, clock: string) => `with
  w as materialized (select * from ${s}.lane where id > $1::int order by id limit ${LOOKED_AT_MAX}),
  ${families(s, "select * from w")},
  i as (insert into ${s}.lane_idle (lane_id, since) select id, ${clock} from empty on conflict do nothing),
  d as (delete from ${s}.lane_idle i using l where i.lane_id = l.id and l.id not in (select id from empty))
  select max(id)::text from w`;

/** $1 how long they must have had nothing, in ms. Those that may go, looked at once more; the others are noted no longer. */
const candidatesSql = (s: string, clock: string) => `with
  c as materialized (select lane_id from ${s}.lane_idle where since < ${clock} - $1::bigint * interval '1 ms' order by since limit ${RETIRED_MAX}),
  ${families(s, `select x.* from ${s}.lane x join c on c.lane_id = x.id`)},
  d as (delete from ${s}.lane_idle i using c where i.lane_id = c.lane_id and c.lane_id not in (select id from empty))
  select c.lane_id::text from c where c.lane_id in (select id from empty)`;

/** $1 lanes, $2 how long, under the lock. A family with a lane that is not idle for as long stays as a whole. */
const retireSql = (s: string, clock: string) => `with
  ${families(s, `select * from ${s}.lane where id = any ($1::int[])`)},
  young as materialized (select distinct l.topic_id, l.tenant, l.priority from l where not exists (
    select from ${s}.lane_idle i where i.lane_id = l.id and i.since < ${clock} - $2::bigint * interval '1 ms')),
  g as (delete from ${s}.lane x using l where x.id = l.id and l.id in (select id from empty)
    and not exists (select from young y where (y.topic_id, y.tenant, y.priority) = (l.topic_id, l.tenant, l.priority)) returning x.id),
  d as (delete from ${s}.lane_idle i using g where i.lane_id = g.id)
  select id from g`;

/** Whether a process of the version before may still be at work. */
const upgradedSql = (
  s: string,
  clock: string,
) => `select (bool_or(m.version = 17 and m.at > ${clock} - ${UPGRADED_MS} * interval '1 ms')
  and max(m.at) - min(m.at) > interval '1 hour')::text from ${s}.migration m where m.version in (1, 17)`;

/** Answers with how many went. `idleMs`: set by tests. */
export function createRetireLanes(db: Db, idleMs = IDLE_MS): (now?: Date) => Promise<number> {
  const { connection, s } = db;
  const run = (text: string, values: unknown[] = []) => connection.rows("retire lanes", text, values);
  let after = 0;

  async function locked(client: Queryable, lanes: readonly string[], clock: string): Promise<string[]> {
    await client.query(`set local lock_timeout = '${LOCK_WAIT}'`);
    await client.query(`lock table ${s}.lane in access exclusive mode`);
    const { rows } = await client.query(retireSql(s, clock), [lanes, idleMs]);
    return (rows as { id: number }[]).map(({ id }) => String(id));
  }

  return async function retire(now) {
    const clock = clockSql(now);
    const [row] = await run(noteSql(s, clock), [after]);
    after = Number(row?.[0] ?? 0);
    const candidates = (await run(candidatesSql(s, clock), [idleMs])).map(([lane]) => lane as string);
    if (candidates.length === 0) return 0;
    const [upgraded] = await run(upgradedSql(s, clock));
    if (upgraded?.[0] === "true") return 0;
    try {
      const gone = await connection.transaction("retire lanes", (client) => locked(client, candidates, clock));
      db.lanes.forget(gone.map(Number));
      return gone.length;
    } catch (thrown) {
      if (hasSqlState(thrown, /^55P03$/)) return 0;
      throw thrown;
    }
  };
}
