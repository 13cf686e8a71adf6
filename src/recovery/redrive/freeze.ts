/** PREVIEW and START: what a selection would be, and the frozen list of it. A group's canary is spread over time and tenants. */
import type { Home, Row, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { columns, int, momentOrNull, text, textOrNull } from "../columns.ts";
import { beginObserving, byPerson } from "../confidence/outcomes-sql.ts";
import { record } from "../provenance.ts";
import { keptSelect, LIST_MS_MAX, type NewRedrive, REDRIVE, type RedriveSelect, SKIPPED } from "./redrive.ts";
import { ALL, planOf } from "./request.ts";
import { listSql, seenText } from "./select-sql.ts";

/** Of each topic `t`, of the list `q`. The row of a preview that saw nothing has a mark and no topic. The last one is looked for only where the limit cut something off. */
const previewed = (s: string) =>
  columns({
    topic: textOrNull("t.topic"),
    messages: int("t.messages"),
    oldestAt: momentOrNull("min(t.oldest) over ()"),
    tenants: int("select count(distinct tenant) from q"),
    snapshot: text("pg_current_snapshot()::text"),
    group: textOrNull(`(select r.id || '.' || r.version from ${s}.recovery_group g
      join ${s}.recovery_group r on r.id = coalesce(g.merged_into, g.id) where g.id = $2::bigint)`),
    last: textOrNull(`case when sum(t.messages) over () >= $1::bigint then (
      select (extract(epoch from q.died_at) * 1000000)::bigint || '.' || q.id from q order by q.died_at desc, q.id desc limit 1) end`),
    why: textOrNull(`(select json_object_agg(w.why, w.n)
      from (select q.why, count(*) as n from q where q.why is not null group by q.why) w)::text`),
  });

async function preview(s: string, run: Run, select: RedriveSelect, mode: NewRedrive["mode"]) {
  const values: unknown[] = [Math.max(0, select.limit), select.groupId ?? null];
  const { list, of } = previewed(s);
  const found = await run(
    `with ${listSql(s, select, mode, undefined, values)} select ${list}
    from (select 1) x left join (select q.topic, count(*) as messages, min(q.died_at) as oldest from q group by q.topic) t on true
    order by t.messages desc, t.topic`,
    values,
    { patienceMs: LIST_MS_MAX },
  );
  const { oldestAt, tenants, snapshot, group, last, why } = of(found[0] as Row);
  const topics = found.map((row) => of(row)).flatMap(({ topic, messages }) => (topic === null ? [] : [{ topic, messages }]));
  const leftOut = JSON.parse(why ?? "{}") as Record<string, number>;
  return {
    /** All that would be listed, those that would be left alone included. */
    messages: topics.reduce((total, { messages }) => total + messages, 0),
    overGeneration: leftOut[SKIPPED.generationCap] ?? 0,
    /** How many would be left alone, by reason: those over the generation cap, of held groups, with a copy under way. */
    leftOut,
    /** Most messages first, then by name. */
    topics,
    /** Different ones; no tenant is one of its own. */
    tenants,
    oldestAt,
    /** What this preview saw, for a select: the engine's own text. Where the select had one, that one again. */
    seen: select.seen ?? seenText(snapshot, group, last),
  };
}

const NUMBERED = `b as (select q.*, dense_rank() over (order by q.group_id, q.topic, case when q.group_id is null then q.code end) as no from q)`;

/** $2: the canary of a group. Each of its slices of time prefers another tenant. */
const ORDERED = `e as (select b.*, row_number() over (partition by no, why is null order by died_at, id) - 1 as age,
    count(*) over (partition by no, why is null) as size, dense_rank() over (partition by no order by tenant) as t from b),
  f as (select e.*, age * $2::bigint / size as slice, max(t) over (partition by no) as tenants from e),
  h as (select f.*, why is null and 1 = row_number() over (partition by no, why is null, slice
    order by mod(t - 1 - slice + $2::bigint * tenants, tenants), died_at, id) as first from f),
  o as materialized (select h.*, row_number() over (order by first desc, case when first then slice end, died_at, id) as n from h)`;

const PLAIN = "o as materialized (select b.*, row_number() over (order by died_at, id) as n from b)";

/** The list, its groups, and the redrive's counts of it, in one statement. Without a canary all of a group may go. */
async function freeze(s: string, run: Run, request: NewRedrive, clock: string) {
  const { redriveId: id, select, mode } = request;
  const { canary, carrier } = planOf(request.plan);
  const values: unknown[] = [id, canary];
  const list = `${listSql(s, select, mode, carrier, values)}, ${NUMBERED}, ${canary > 0 ? ORDERED : PLAIN}`;
  const [row] = await run(
    `with ${list},
    i as (insert into ${s}.redrive_item (redrive_id, n, message_id, generation, revision, group_id, state, reason, ended_at, group_no)
      select $1::uuid, o.n, o.id, o.generation, o.revision, o.group_id, case when o.why is null then 0 else 4 end,
        o.why, case when o.why is not null then ${clock} end, o.no from o),
    g as (insert into ${s}.redrive_group (redrive_id, no, group_id, topic, code, canary, waiting, sent, healed, failed, skipped)
      select $1::uuid, o.no, min(o.group_id), min(o.topic), min(o.code), case when $2::bigint = 0 then ${ALL} else $2::bigint end,
        count(*) filter (where o.why is null), 0, 0, 0, count(o.why) from o group by o.no)
    update ${s}.redrive r set selected = c.n, waiting = c.n - c.skipped, skipped = c.skipped
    from (select count(*) as n, count(o.why) as skipped from o) c where r.id = $1::uuid returning ${REDRIVE.list}`,
    values,
    { patienceMs: LIST_MS_MAX },
  );
  return REDRIVE.of(row as Row);
}

/** The redrive carries the execution on; false: the candidate runs under another execution, or not any more. */
async function carryOn(s: string, run: Run, request: NewRedrive, clock: string): Promise<boolean> {
  const said = `update ${s}.recovery_candidate set redrive_id = $1, lease_until = null, version = version + 1, updated_at = ${clock}
    where id = $2::bigint and execution_status = 'executing' and execution_id = $3 returning 1`;
  return (await run(said, [request.redriveId, request.candidateId, request.executionId])).length > 0;
}

async function earlier(s: string, run: Run, { redriveId: id, idempotencyKey, requestHash }: NewRedrive) {
  const asked = `select ${REDRIVE.list}, (r.request_hash = $3)::text from ${s}.redrive r where r.request_key = $2 or r.id = $1::uuid
    order by r.request_key = $2 desc nulls last limit 1`;
  const [row] = await run(asked, [id, idempotencyKey, requestHash]);
  return row ? ({ kind: row.at(-1) === "true" ? "same" : "conflict", redrive: REDRIVE.of(row) } as const) : null;
}

/** conflict: the key belongs to a redrive of another request. lost: the candidate is no longer executing under this execution. */
async function start(s: string, run: Run, request: NewRedrive, { now }: At) {
  const clock = clockSql(now);
  const known = await earlier(s, run, request);
  if (known) return known;
  if (request.executionId !== undefined && !(await carryOn(s, run, request, clock))) return { kind: "lost" } as const;
  const inserted = await run(
    `insert into ${s}.redrive (id, request_key, request_hash, status, mode, action, candidate_id, actor, reason, selection, plan, repair, created_at, started_at)
      values ($1::uuid, $2, $3, $4, $5, $6, $7::bigint, $8, $9, $10, $11, $12, ${clock}, case when $4 = 'running' then ${clock} end)
      on conflict do nothing returning 1`,
    [
      ...[request.redriveId, request.idempotencyKey, request.requestHash, request.status, request.mode, request.action],
      ...[request.candidateId, request.actor, request.reason, JSON.stringify(keptSelect(request.select)), request.plan],
      request.repair ?? null,
    ],
  );
  // Another request came at the same moment: this one is undone and asked again, and then it is the second of the two.
  if (inserted.length === 0) throw Object.assign(new Error("a redrive of this key was started meanwhile"), { code: "40001" });
  const redrive = await freeze(s, run, request, clock);
  if (request.status === "running") await beginObserving(s, run, request.redriveId, byPerson(request.provenance), clock);
  await record(s, run, request.provenance, { now });
  return { kind: "started", redrive } as const;
}

export const createRedriveStart = (home: Home) => ({
  preview: (select: RedriveSelect, mode: NewRedrive["mode"] = "replay") =>
    preview(home.s, home.read("preview a redrive"), select, mode),
  start: (request: NewRedrive, at: At = {}) => home.transaction("start a redrive", ({ run }) => start(home.s, run, request, at)),
});
