/**
 * INTERVENE: replay, resolve, discard, cancel or reschedule one message. One statement each, fenced by state and revision, with its line of
 * provenance in the same write; two people pressing at once are one intervention.
 */
import { isUuid } from "../../../platform/ids.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { Intervention, InterventionResult } from "../../store.ts";
import { type Db, RESOLUTION_CODES } from "../db.ts";
import type { createReads } from "./read.ts";

/** Parameters everywhere: $1 id, $2 revision or null, $3 actor, $4 reason; $5 for reschedule: the delay. */
const note = (s: string, clock: string, action: string, from: string) =>
  `insert into ${s}.provenance (at, message_id, actor, action, reason) select ${clock}, id, $3::text, '${action}', $4::text from ${from}`;

/** A message's revision stands in its dead_letter row; without one it is 0. */
const revisionFits = (s: string) =>
  `($2::int is null or $2::int = coalesce((select d.revision from ${s}.dead_letter d where d.id = $1::uuid), 0))`;

/** The one that waits behind a pending row that is taken away. */
const nextOf = (s: string) => `select n.id from q cross join lateral (select r.id from ${s}.ready_ordered r
      where r.lane_id = q.lane_id and r.ordering_key = q.ordering_key and r.id <> q.id order by r.seq, r.id limit 1 for update skip locked) n`;

/** Takes the pending row of a message that is held (or, for discard and cancel, of any pending one). */
const takePending = (s: string, heldOnly: boolean) => `
  g as (delete from ${s}.held where id = $1::uuid and ${revisionFits(s)} returning id),
  p as (delete from ${s}.ready where id = $1::uuid and ${heldOnly ? "id in (select id from g)" : revisionFits(s)} returning id, lane_id, attempts, bytes),
  q as (delete from ${s}.ready_ordered where id = $1::uuid and ${heldOnly ? "id in (select id from g)" : revisionFits(s)} returning id, lane_id, ordering_key, attempts, seq),
  n as (update ${s}.ready_ordered r set behind = false from (${nextOf(s)}) n where r.id = n.id)`;

const replaySql = (s: string) =>
  perClock(
    (clock) => `with ${takePending(s, true)},
  d as (update ${s}.dead_letter set resolution = ${RESOLUTION_CODES.replayed}, generation = generation + 1, revision = revision + 1, settled_at = ${clock}
    where id = $1::uuid and resolution = 0 and ($2::int is null or revision = $2::int) returning id, lane_id, attempts, coalesce(seq, 0) as seq),
  f as (delete from ${s}.order_lock using d where order_lock.id = d.id),
  m as (select d.id, d.lane_id, d.attempts, d.seq, b.bytes, b.ordering_key, l.kind from d join ${s}.lane l on l.id = d.lane_id
    left join lateral (select ordering_key, octet_length(payload) as bytes from ${s}.message where id = d.id union all select ordering_key, octet_length(payload) from ${s}.message_kept where id = d.id limit 1) b on true),
  r1 as (insert into ${s}.ready (due, id, lane_id, attempts, base, bytes)
    select ${clock}, id, coalesce((select n.id from ${s}.lane c join ${s}.lane n on n.topic_id = c.topic_id and n.tenant = c.tenant and n.priority = c.priority and n.kind = 0
      where c.id = x.lane_id), lane_id), attempts, attempts, bytes from (select id, lane_id, attempts, bytes from m where kind <> 3 union all select * from p) x returning lane_id),
  r2 as (insert into ${s}.ready_ordered (lane_id, ordering_key, id, seq, due, attempts, base)
    select lane_id, ordering_key, id, seq, ${clock}, attempts, attempts from (select id, lane_id, ordering_key, attempts, seq from m where kind = 3 union all select * from q) x returning lane_id),
  i as (insert into ${s}.dead_letter (id, lane_id, attempts, generation, resolution, settled_at)
    select id, lane_id, attempts, 1, ${RESOLUTION_CODES.replayed}, ${clock} from (select id, lane_id, attempts from p union all select id, lane_id, attempts from q) x
    on conflict (id) do update set generation = dead_letter.generation + 1, revision = dead_letter.revision + 1, attempts = excluded.attempts),
  v as (${note(s, clock, "replay", "(select id from d union all select id from p union all select id from q) x")})
  select lane_id::text from r1 union all select lane_id::text from r2`,
  );

const endSql = (s: string, action: "resolve" | "discard" | "cancel") =>
  perClock((clock) => {
    const code = action === "resolve" ? RESOLUTION_CODES.resolved : RESOLUTION_CODES.discarded;
    return `with ${takePending(s, action === "resolve")},
  d as (update ${s}.dead_letter set resolution = ${code}, revision = revision + 1, settled_at = ${clock}
    where id = $1::uuid and resolution = 0 and ${action !== "cancel"} and ($2::int is null or revision = $2::int) returning id, lane_id),
  f as (delete from ${s}.order_lock using d where order_lock.id = d.id),
  i as (insert into ${s}.dead_letter (id, lane_id, attempts, resolution, died_at, settled_at, code, error)
    select id, lane_id, attempts, ${code}, ${clock}, ${clock}, '${action}', $4::text from (select id, lane_id, attempts from p union all select id, lane_id, attempts from q) x
    on conflict (id) do update set resolution = ${code}, revision = dead_letter.revision + 1, died_at = excluded.died_at, settled_at = excluded.settled_at,
      attempts = excluded.attempts),
  v as (${note(s, clock, action, "(select id from d union all select id from p union all select id from q) x")})
  select lane_id::text from (select lane_id from d union all select lane_id from p union all select lane_id from q) x`;
  });

/**
 * Another row takes the place of the one that waits: a ready row is never updated, and of two that come at once the second finds none. In its
 * ordering key it keeps its number; whether it is `behind` is found out again, because one that is held here is not shown by others.
 * The revision of what never died stands in a dead_letter row that says so, as that of a replay.
 */
const rescheduleSql = (s: string) =>
  perClock((clock) => {
    const due = `${clock} + $5::bigint * interval '1 ms'`;
    const waits = `id = $1::uuid and ${revisionFits(s)} and not exists (select from ${s}.held h where h.id = $1::uuid)`;
    const ordered = "lane_id, ordering_key, id, seq, attempts, base, suspicion, failed";
    return `with p as (delete from ${s}.ready where ${waits} returning id, lane_id, attempts, base, bytes),
  r as (insert into ${s}.ready (due, id, lane_id, attempts, base, bytes) select ${due}, id, lane_id, attempts, base, bytes from p),
  q as (delete from ${s}.ready_ordered where ${waits} returning ${ordered}),
  o as (insert into ${s}.ready_ordered (due, ${ordered}) select ${due}, ${ordered} from q),
  x as (select id, lane_id, attempts from p union all select id, lane_id, attempts from q),
  i as (insert into ${s}.dead_letter (id, lane_id, attempts, resolution, settled_at)
    select id, lane_id, attempts, ${RESOLUTION_CODES.replayed}, ${clock} from x on conflict (id) do update set revision = dead_letter.revision + 1),
  v as (${note(s, clock, "reschedule", "x")})
  select lane_id::text from x`;
  });

export function createIntervene(
  db: Db,
  reads: ReturnType<typeof createReads>,
  onWork: (lanes: Iterable<string>) => void,
): (intervention: Intervention) => Promise<InterventionResult> {
  const ending = { resolve: endSql(db.s, "resolve"), discard: endSql(db.s, "discard"), cancel: endSql(db.s, "cancel") };
  const statements = { replay: replaySql(db.s), ...ending, reschedule: rescheduleSql(db.s) };

  return async function intervene({ id, action, actor, reason, revision, delayMs = 0, now }) {
    if (!isUuid(id)) return { kind: "not_found" };
    const values = [id, revision ?? null, actor, reason, ...(action === "reschedule" ? [delayMs] : [])];
    const rows = await db.connection.rows(action, statements[action](now), values);
    const message = await reads.get(id);
    if (!message) return { kind: "not_found" };
    if (rows.length > 0) {
      onWork(rows.map((row) => row[0] as string));
      return { kind: "done", message };
    }
    if (revision !== undefined && revision !== message.revision) return { kind: "revision_conflict", revision: message.revision };
    return { kind: "wrong_state", status: message.status, resolution: message.resolution };
  };
}
