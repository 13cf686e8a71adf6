/**
 * INTERVENE: replay, resolve, discard, cancel, reschedule or reopen messages, one or many. One statement each, fenced by state and
 * revision, with a line of provenance for each in the same write; two people pressing at once are one intervention. Rows are named by
 * arrays and not joined to them, so no plan, however old, reads a table for a few of its rows.
 */
import { isUuid } from "../../../platform/ids.ts";
import type { Named, Run } from "../../home.ts";
import { clockSql } from "../../shared/clock-sql.ts";
import type { Intervention, InterventionResult } from "../../store.ts";
import { type Db, RESOLUTION_CODES } from "../db.ts";
import type { createReads } from "./read.ts";

/** Parameters everywhere: $1 ids, $2 revisions (null: any), $3 actor, $4 reason; $5 for reschedule: the delay. */
const note = (s: string, clock: string, action: string, from: string) =>
  `insert into ${s}.provenance (at, message_id, actor, action, reason) select ${clock}, id, $3::text, '${action}', $4::text from ${from}`;

const named = (row: string) => `${row}.id = any ($1::uuid[])`;
const fits = (row: string, revision: string) =>
  `coalesce(${revision} = ($2::int[])[array_position($1::uuid[], ${row}.id)], ($2::int[])[array_position($1::uuid[], ${row}.id)] is null)`;

/** The index gives them in the order of their ids: two of these never wait in a circle. */
const DEAD = `${named("d")} and d.resolution = 0 and ${fits("d", "d.revision")}`;

/** A message's revision stands in its dead_letter row; without one it is 0. */
const pending = (s: string, row: string) =>
  `${named(row)} and ${fits(row, `coalesce((select d.revision from ${s}.dead_letter d where d.id = ${row}.id), 0)`)}`;

/** The one that waits behind a pending row that is taken away. */
const nextOf = (s: string) => `select n.id from q cross join lateral (select r.id from ${s}.ready_ordered r
      where r.lane_id = q.lane_id and r.ordering_key = q.ordering_key and not exists (select from q k where k.id = r.id)
      order by r.seq, r.id limit 1 for update skip locked) n`;

/** Takes the pending rows of messages that are held (or, for discard and cancel, of any pending ones). */
function takePending(s: string, heldOnly: boolean): string {
  const taken = heldOnly ? `${named("r")} and r.id in (select id from g)` : pending(s, "r");
  return `g as (delete from ${s}.held h where ${pending(s, "h")} returning h.id),
  p as (delete from ${s}.ready r where ${taken} returning r.id, r.lane_id, r.attempts, r.bytes),
  q as (delete from ${s}.ready_ordered r where ${taken} returning r.id, r.lane_id, r.ordering_key, r.attempts, r.seq),
  n as (update ${s}.ready_ordered r set behind = false from (${nextOf(s)}) n where r.id = n.id),
  f as (delete from ${s}.order_lock k where ${named("k")} and exists (select from d where d.id = k.id))`;
}

const WAITED = "(select id, lane_id, attempts from p union all select id, lane_id, attempts from q) x";
const TOUCHED = "(select id, lane_id from d union all select id, lane_id from p union all select id, lane_id from q) x";

const replaySql = (
  s: string,
  clock: string,
) => `with d as (update ${s}.dead_letter d set resolution = ${RESOLUTION_CODES.replayed}, generation = d.generation + 1, revision = d.revision + 1,
    settled_at = ${clock} where ${DEAD} returning d.id, d.lane_id, d.attempts, coalesce(d.seq, 0) as seq),
  ${takePending(s, true)},
  m as (select d.id, d.lane_id, d.attempts, d.seq, b.bytes, b.ordering_key, l.kind from d join ${s}.lane l on l.id = d.lane_id
    left join lateral (select ordering_key, octet_length(payload) as bytes from ${s}.message where id = d.id
      union all select ordering_key, octet_length(payload) from ${s}.message_kept where id = d.id limit 1) b on true),
  r as (insert into ${s}.ready (due, id, lane_id, attempts, base, bytes)
    select ${clock}, x.id, case when l.kind = 0 then l.id else coalesce(h.id, l.id) end, x.attempts, x.attempts, x.bytes
    from (select id, lane_id, attempts, bytes from m where kind <> 3 union all select id, lane_id, attempts, bytes from p) x
    join ${s}.lane l on l.id = x.lane_id
    left join ${s}.lane h on h.topic_id = l.topic_id and h.tenant = l.tenant and h.priority = l.priority and h.kind = 0 returning id, lane_id),
  o as (insert into ${s}.ready_ordered (lane_id, ordering_key, id, seq, due, attempts, base)
    select lane_id, ordering_key, id, seq, ${clock}, attempts, attempts
    from (select id, lane_id, ordering_key, attempts, seq from m where kind = 3 union all select * from q) x returning id, lane_id),
  i as (insert into ${s}.dead_letter (id, lane_id, attempts, generation, resolution, settled_at)
    select id, lane_id, attempts, 1, ${RESOLUTION_CODES.replayed}, ${clock} from ${WAITED}
    on conflict (id) do update set generation = dead_letter.generation + 1, revision = dead_letter.revision + 1, attempts = excluded.attempts),
  v as (${note(s, clock, "replay", TOUCHED)})
  select id::text, lane_id::text from r union all select id::text, lane_id::text from o`;

function endSql(s: string, clock: string, action: "resolve" | "discard" | "cancel"): string {
  const code = action === "resolve" ? RESOLUTION_CODES.resolved : RESOLUTION_CODES.discarded;
  return `with d as (update ${s}.dead_letter d set resolution = ${code}, revision = d.revision + 1, settled_at = ${clock}
    where ${DEAD} and ${action !== "cancel"} returning d.id, d.lane_id),
  ${takePending(s, action === "resolve")},
  i as (insert into ${s}.dead_letter (id, lane_id, attempts, resolution, died_at, settled_at, code, error)
    select id, lane_id, attempts, ${code}, ${clock}, ${clock}, '${action}', $4::text from ${WAITED}
    on conflict (id) do update set resolution = ${code}, revision = dead_letter.revision + 1, died_at = excluded.died_at, settled_at = excluded.settled_at,
      attempts = excluded.attempts),
  v as (${note(s, clock, action, TOUCHED)})
  select id::text, lane_id::text from ${TOUCHED}`;
}

/**
 * Another row takes the place of the one that waits: a ready row is never updated, and of two that come at once the second finds none. In its
 * ordering key it keeps its number; whether it is `behind` is found out again, because one that is held here is not shown by others.
 * The revision of what never died stands in a dead_letter row that says so, as that of a replay.
 */
function rescheduleSql(s: string, clock: string): string {
  const due = `${clock} + $5::bigint * interval '1 ms'`;
  const waits = `${pending(s, "r")} and not exists (select from ${s}.held h where h.id = r.id)`;
  const ordered = "lane_id, ordering_key, id, seq, attempts, base, suspicion, failed";
  return `with p as (delete from ${s}.ready r where ${waits} returning id, lane_id, attempts, base, bytes),
  r as (insert into ${s}.ready (due, id, lane_id, attempts, base, bytes) select ${due}, id, lane_id, attempts, base, bytes from p),
  q as (delete from ${s}.ready_ordered r where ${waits} returning ${ordered}),
  o as (insert into ${s}.ready_ordered (due, ${ordered}) select ${due}, ${ordered} from q),
  i as (insert into ${s}.dead_letter (id, lane_id, attempts, resolution, settled_at)
    select id, lane_id, attempts, ${RESOLUTION_CODES.replayed}, ${clock} from ${WAITED} on conflict (id) do update set revision = dead_letter.revision + 1),
  v as (${note(s, clock, "reschedule", WAITED)})
  select id::text, lane_id::text from ${WAITED}`;
}

/** What a person resolved or discarded is an open dead letter again, where it lay. */
const reopenSql = (
  s: string,
  clock: string,
) => `with d as (update ${s}.dead_letter d set resolution = 0, revision = d.revision + 1, settled_at = null
    where ${named("d")} and d.resolution in (${RESOLUTION_CODES.resolved}, ${RESOLUTION_CODES.discarded}) and ${fits("d", "d.revision")} returning d.id),
  v as (${note(s, clock, "reopen", "d")})
  select id::text from d`;

type Action = Intervention["action"] | "reopen";

function textOf(s: string, action: Action, clock: string): string {
  if (action === "replay") return replaySql(s, clock);
  if (action === "reschedule") return rescheduleSql(s, clock);
  return action === "reopen" ? reopenSql(s, clock) : endSql(s, clock, action);
}

type Of = Pick<Intervention, "actor" | "reason" | "now" | "delayMs">;

/** Those that stood as named, each with the lane where it became claimable or let another one by. */
export async function interveneIn(s: string, run: Run, action: Action, which: readonly Named[], by: Of) {
  if (which.length === 0) return [];
  const { actor, reason, now, delayMs = 0 } = by;
  const values = [which.map(({ id }) => id), which.map(({ revision }) => revision ?? null), actor, reason];
  const name = now ? undefined : `mg_intervene_${action}`;
  return run(textOf(s, action, clockSql(now)), action === "reschedule" ? [...values, delayMs] : values, { name });
}

/** Runs a write inside of something larger. */
export type Within = (write: (run: Run) => Promise<void>) => Promise<void>;

export function createIntervene(
  { s, connection }: Db,
  reads: ReturnType<typeof createReads>,
  onWork: (lanes: Iterable<string>) => void,
): (intervention: Intervention, within?: Within) => Promise<InterventionResult> {
  return async function intervene(intervention, within) {
    const { id, action, revision } = intervention;
    if (!isUuid(id)) return { kind: "not_found" };
    let rows: Awaited<ReturnType<Run>> = [];
    const write = async (run: Run) => {
      rows = await interveneIn(s, run, action, [{ id, revision }], intervention);
    };
    await (within ? within(write) : write((text, values = [], how = {}) => connection.rows(action, text, values, how)));
    const message = await reads.get(id);
    if (!message) return { kind: "not_found" };
    if (rows.length > 0) {
      onWork(rows.map((row) => row[1] as string));
      return { kind: "done", message };
    }
    if (revision !== undefined && revision !== message.revision) return { kind: "revision_conflict", revision: message.revision };
    return { kind: "wrong_state", status: message.status, resolution: message.resolution };
  };
}
