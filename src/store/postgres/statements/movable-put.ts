/**
 * MOVE, the writing side: messages as they stood elsewhere, in one statement. Bodies go to `message_kept`, which has no days: their own may
 * be long gone here. What has the same id or key is left as it is and looked up in a second statement, whose snapshot sees what others
 * committed meanwhile.
 */
import { MakegoodError } from "../../../message/errors.ts";
import type { AttemptRecord } from "../../../message/message.ts";
import { payloadHash } from "../../../message/validate.ts";
import { idTimeMs } from "../../../platform/ids.ts";
import { lastFailure, type MovableMessage, type PutResult } from "../../movable.ts";
import { asking, holdMark } from "../conservation/ledger.ts";
import { countIn } from "../conservation/register.ts";
import { type Db, OUTCOME_CODES, RESOLUTION_CODES } from "../db.ts";
import { KIND_ORDERED, type LaneInfo } from "../lane-table.ts";
import { DAY_MS, dayOf, ensurePartitions } from "../partitions.ts";

/** No partition is ever made for days further off than this (enqueue.ts). */
const DAYS_OFF_MS_MAX = 9 * DAY_MS;
const TRIES_MAX = 5;

const RECORD = `id uuid, topic_id int, tenant text, key text, hash uuid, home int, lane int, ordered boolean, ordering_key text, payload text,
  traceparent text, schema_version int, handed_down boolean, created text, status text, due text, attempts smallint, base smallint, suspicion smallint,
  failed boolean, seq bigint, blocks boolean, held text, revision int, generation smallint, resolution smallint, died text, settled text, code text,
  error text, attempted json, provenance json`;

const lastAttempts = "cross join lateral json_array_elements(x.attempted) with ordinality e(a, o)";

/**
 * $1: the messages as JSON, $2: the lanes they name, $3: how many those are. Lanes are kept from being retired until the commit; if one is
 * gone, nothing is written. The numbers of an attempt's lease are below zero here: the order of the attempts, before any lease of this store.
 * Provenance that came as records (move/tables.ts) is there already, with its numbers and its proof.
 */
const putSql = (s: string) => `with
  h as materialized (select count(*) = $3::int as ok from (select from ${s}.lane where id = any ($2::int[]) for key share) l),
  x as materialized (select x.* from json_to_recordset($1::text::json) x(${RECORD})
    where (select ok from h) and not exists (select from ${s}.message m where m.id = x.id) and not exists (select from ${s}.message_kept m where m.id = x.id)),
  n as materialized (select setval('${s}.order_seq', w.seq) from (select max(seq) as seq from x where ordered) w, ${s}.order_seq o where w.seq > o.last_value),
  k as (insert into ${s}.dedupe (topic_id, tenant, key, id, hash)
    select topic_id, tenant, key, id, hash from x where key is not null order by topic_id, tenant, key on conflict do nothing returning id),
  m as (insert into ${s}.message_kept (id, created_at, lane_id, schema_version, handed_down, key, ordering_key, traceparent, payload)
    select id, created::timestamptz, home, schema_version, handed_down, key, ordering_key, traceparent, payload
    from x where key is null or id in (select id from k) order by id on conflict do nothing returning id),
  p as materialized (select x.* from x where id in (select id from m)),
  r as (insert into ${s}.ready (due, id, lane_id, attempts, base, bytes)
    select coalesce(due, 'infinity')::timestamptz, id, lane, attempts, base, octet_length(payload) from p where status = 'pending' and not ordered),
  o as (insert into ${s}.ready_ordered (lane_id, ordering_key, id, seq, due, attempts, base, suspicion, failed, behind)
    select home, ordering_key, id, seq, coalesce(due, 'infinity')::timestamptz, attempts, base, suspicion, failed,
      row_number() over (partition by home, ordering_key order by seq, id) > 1 from p where status = 'pending' and ordered),
  b as (insert into ${s}.order_lock (lane_id, ordering_key, id, seq) select home, ordering_key, id, seq from p where blocks on conflict do nothing),
  g as (insert into ${s}.held (id, reason) select id, held from p where held is not null),
  d as (insert into ${s}.dead_letter (id, lane_id, attempts, generation, resolution, revision, died_at, settled_at, code, error, seq)
    select id, home, attempts, generation, resolution, revision, coalesce(died, created)::timestamptz, settled::timestamptz, code, error, case when ordered then seq end
    from p where resolution < ${RESOLUTION_CODES.replayed} or revision > 0 or generation > 0),
  a as (insert into ${s}.attempt (message_id, lease_id, n, outcome, counted, at, duration_ms, next_due, code, error)
    select x.id, e.o - json_array_length(x.attempted) - 1, (e.a ->> 0)::smallint, (e.a ->> 1)::smallint, (e.a ->> 2)::boolean, (e.a ->> 3)::timestamptz,
      (e.a ->> 4)::int, (e.a ->> 5)::timestamptz, e.a ->> 6, e.a ->> 7 from p x ${lastAttempts}),
  v as (insert into ${s}.provenance (at, message_id, actor, action, reason)
    select (e.v ->> 0)::timestamptz, x.id, e.v ->> 1, e.v ->> 2, e.v ->> 3
    from p x cross join lateral json_array_elements(x.provenance) with ordinality e(v, o)
    where not exists (select from ${s}.provenance t where t.message_id = x.id) order by x.id, e.o)
  select null::text, (select ok from h)::text, (select count(*) from n)::text union all select id::text, null, null from m`;

/** $1: ids, $2: hashes of their payloads, $3 to $5: topic, tenant and key (or null) of each. The id that is there, and whether it has that payload. */
const knownSql = (s: string) => `select x.o::text, coalesce(m.id, d.id)::text, (coalesce(m.hash, d.hash) = x.hash)::text
  from unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::text[]) with ordinality x(id, hash, topic_id, tenant, key, o)
  left join lateral (select m.id, substr(encode(sha256(convert_to(m.payload, 'UTF8')), 'hex'), 1, 32)::uuid as hash from (
    select id, payload from ${s}.message where id = x.id union all select id, payload from ${s}.message_kept where id = x.id) m limit 1) m on true
  left join ${s}.dedupe d on m.id is null and d.topic_id = x.topic_id and d.tenant = x.tenant and d.key = x.key`;

/** What PostgreSQL cannot hold in a text must not keep a message from being moved. */
const storable = (text: string | null): string | null => text?.replaceAll("\u0000", "\ufffd") ?? null;

const attemptRow = (one: AttemptRecord) => [
  one.attempt,
  OUTCOME_CODES[one.outcome],
  one.counted,
  one.at,
  one.durationMs,
  one.nextAttemptAt,
  storable(one.code),
  storable(one.error),
];

function recordOf(one: MovableMessage, home: LaneInfo, lane: LaneInfo) {
  const ordered = home.kind === KIND_ORDERED;
  const failed = lastFailure(one.history);
  return {
    id: one.id,
    topic_id: home.topicId,
    tenant: home.tenant,
    key: one.key,
    hash: payloadHash(one.payload),
    home: home.id,
    lane: lane.id,
    ordered,
    ordering_key: ordered ? one.orderingKey : null,
    payload: one.payload,
    traceparent: one.traceparent,
    schema_version: one.schemaVersion,
    handed_down: one.handedDown ? true : null,
    created: one.createdAt,
    status: one.status,
    due: one.nextAttemptAt,
    attempts: one.attempts,
    base: one.base,
    suspicion: one.suspicion,
    failed: one.retried,
    seq: ordered ? (one.place ?? 0) : null,
    blocks: ordered && one.blocksOrder,
    held: storable(one.heldReason),
    revision: one.revision,
    generation: one.generation,
    resolution: one.resolution === null ? RESOLUTION_CODES.replayed : RESOLUTION_CODES[one.resolution],
    died: one.diedAt,
    settled: one.status === "dead" ? one.settledAt : null,
    code: storable(failed?.code ?? null),
    error: storable(failed?.error ?? null),
    attempted: one.history.map(attemptRow),
    provenance: one.provenance.map(({ at, actor, action, reason }) => [at, storable(actor), action, storable(reason)]),
  };
}

type Rec = ReturnType<typeof recordOf>;

export function createMovablePut(db: Db, onWork: (lanes: Iterable<string>) => void) {
  const { connection, s } = db;

  /** Days that an enqueue may still make: afterwards it could not, for the attempts that would already stand in the table without days. */
  async function makeDays(messages: readonly MovableMessage[]): Promise<void> {
    const now = db.clock.wallMs();
    const ahead = messages.find(({ id }) => dayOf(idTimeMs(id)) - now > DAYS_OFF_MS_MAX);
    if (ahead) throw new MakegoodError("invalid_message", `the time in the id ${ahead.id} is too far ahead`, { id: ahead.id });
    const days = new Set(messages.map(({ id }) => dayOf(idTimeMs(id))).filter((day) => now - day <= DAYS_OFF_MS_MAX));
    await ensurePartitions(connection, s, [...days]);
  }

  async function records(messages: readonly MovableMessage[]): Promise<Rec[]> {
    const homes = await db.lanes.of(messages);
    const waiting = messages.map(({ suspicion, retried }, i) => ({ lane: homes[i] as LaneInfo, suspicion, retried }));
    const lanes = await db.lanes.siblings(waiting);
    return messages.map((one, i) => recordOf(one, homes[i] as LaneInfo, lanes[i] as LaneInfo));
  }

  /** The ids that were put; null: a lane is gone. What was put is accepted here, and is counted so with it: no pass would meet it later. */
  function write(made: string, lanes: readonly number[]): Promise<string[] | null> {
    return connection.transaction("put what is moved", async (client) => {
      const ask = asking(client);
      const mark = await holdMark(ask, s);
      const rows = await ask(putSql(s), [made, lanes, lanes.length]);
      if (!rows.some(([, ok]) => ok === "true")) return null;
      const put = rows.flatMap(([id]) => id ?? []);
      const seen = mark?.phase === 0 ? ` and k.id <= '${mark.cursor}'` : "";
      const counted = `(select k.* from ${s}.message_kept k where k.id = any ('{${put.join(",")}}'::uuid[])${seen})`;
      if (mark && put.length > 0) await countIn(ask, s, counted, false);
      return put;
    });
  }

  async function insert(messages: readonly MovableMessage[]): Promise<{ put: Set<string>; made: Rec[] }> {
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const made = await records(messages);
      const lanes = [...new Set(made.flatMap(({ home, lane }) => [home, lane]))];
      const put = await write(JSON.stringify(made), lanes);
      if (put) return { put: new Set(put), made };
      db.lanes.forget(lanes);
    }
    throw new MakegoodError("store_unavailable", "its lanes were retired while messages were put; run it again");
  }

  async function known(made: readonly Rec[]): Promise<Map<string, PutResult>> {
    if (made.length === 0) return new Map();
    const columns = [made.map(({ id }) => id), made.map(({ hash }) => hash), made.map((one) => one.topic_id)];
    const values = [...columns, made.map(({ tenant }) => tenant), made.map(({ key }) => key)];
    const rows = await connection.rows("put what is moved", knownSql(s), values, { reads: true });
    return new Map(
      rows.map(([o, there, same]): [string, PutResult] => {
        const { id } = made[Number(o) - 1] as Rec;
        if (there === null)
          throw new MakegoodError("store_unavailable", `${id} was pruned while it was put; run it again`, { id });
        return [id, { kind: same !== "true" ? "conflict" : there === id ? "present" : "duplicate", id: there as string }];
      }),
    );
  }

  return async function put(messages: readonly MovableMessage[]): Promise<PutResult[]> {
    if (messages.length === 0) return [];
    if (messages.some(({ status }) => status === "processing")) {
      throw new MakegoodError("invalid_message", "a message in flight cannot be put: say first what became of it");
    }
    await makeDays(messages);
    const { put: done, made } = await insert(messages);
    if (done.size > 0) onWork(new Set(made.filter(({ id }) => done.has(id)).map(({ lane }) => String(lane))));
    const there = await known(made.filter(({ id }) => !done.has(id)));
    return messages.map(({ id }) => there.get(id) ?? { kind: "put", id });
  };
}
