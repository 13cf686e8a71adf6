/**
 * TOPICS in PostgreSQL: one row per topic, each change one statement. A deleted topic keeps its row, because the history of
 * its messages still names it; secrets stand in a column of their own so that a definition can be shown.
 */
import {
  type BreakerState,
  CARRIERS,
  type SinkConfig,
  type TopicDefinition,
  type TopicRecord,
  type TopicSource,
} from "../../message/topic.ts";
import { clockSql, perClock } from "../shared/clock-sql.ts";
import type { TopicStore } from "../topics.ts";
import { createAllot } from "./allot.ts";
import { createBreakers } from "./breakers.ts";
import type { Row } from "./connection.ts";
import type { Db } from "./db.ts";
import { createWorkers } from "./workers.ts";

const BREAKER_STATES = ["closed", "open", "half_open"] as const;

const columns = (clock: string) => `name, definition, secrets, source, revision::text, paused::text, disabled_reason,
  (case when breaker_state = 2 and probe_until < ${clock} then 1 else breaker_state end)::text,
  greatest(0, case when breaker_state <> 1 then extract(epoch from (probe_until - ${clock})) else extract(epoch from (breaker_until - ${clock})) end * 1000)::bigint::text,
  breaker_trips::text, breaker_reason, nullif(held_tenants, '{}')::text`;

/** What was read last of each topic: every worker reads them all once a second, and they hardly ever change. */
const readBefore = new Map<
  string,
  { readonly text: string; readonly secrets: string | null; readonly definition: TopicDefinition }
>();
const READ_KEPT_MAX = 2_000;

function definitionOf([name, text, secrets]: Row): TopicDefinition {
  const before = readBefore.get(name as string);
  if (before && before.text === text && before.secrets === secrets) return before.definition;
  const definition = withSecrets(JSON.parse(text as string) as TopicDefinition, secrets as string | null);
  if (readBefore.size >= READ_KEPT_MAX) readBefore.clear();
  readBefore.set(name as string, { text: text as string, secrets: secrets as string | null, definition });
  return definition;
}

function record(row: Row): TopicRecord {
  return {
    ...definitionOf(row),
    source: row[3] as TopicSource,
    revision: Number(row[4]),
    paused: row[5] === "true",
    disabledReason: row[6] as string | null,
    breaker: breakerOf(row.slice(7)),
  };
}

/** All of them, unless they are what they were when `mark` was the answer: then only the mark comes back. */
const sameSql = (
  s: string,
) => `with t as materialized (select ${columns(clockSql(undefined))} from ${s}.topic where not deleted order by name),
  h as materialized (select md5(coalesce(string_agg(t::text, ''), '')) as mark from t)
  select h.mark, t.* from h left join t on h.mark is distinct from $1::text`;

/** Reads every topic; what did not change since is not sent, parsed and made again: a worker of a thousand topics does this once a second. */
function createListing(
  read: (text: string, values: unknown[]) => Promise<readonly Row[]>,
  s: string,
): () => Promise<TopicRecord[]> {
  const text = sameSql(s);
  let last: { readonly mark: string | null; readonly records: readonly TopicRecord[] } = { mark: null, records: [] };
  return async () => {
    const before = last;
    const rows = await read(text, [before.mark]);
    const mark = rows[0]?.[0] as string;
    if (mark === before.mark) return [...before.records];
    last = { mark, records: rows.filter((row) => row[1] !== null).map((row) => record(row.slice(1))) };
    return [...last.records];
  };
}

const SINKS = ["sink", ...CARRIERS] as const;
type Secrets = Partial<Record<(typeof SINKS)[number], readonly string[] | undefined>>;

/** A list is the topic's own sink's; several sinks with secrets are an object. */
function withSecrets(definition: TopicDefinition, text: string | null): TopicDefinition {
  if (text === null) return definition;
  const parsed = JSON.parse(text) as string[] | Secrets;
  const secrets: Secrets = Array.isArray(parsed) ? { sink: parsed } : parsed;
  const sinks = SINKS.filter((name) => secrets[name]).map((name) => [name, { ...definition[name], secrets: secrets[name] }]);
  return { ...definition, ...Object.fromEntries(sinks) };
}

function breakerOf([code, inMs, trips, reason, held]: readonly (string | null | undefined)[]): BreakerState {
  const state = BREAKER_STATES[Number(code)] ?? "closed";
  const tenants = Object.entries(JSON.parse(held ?? "{}") as Record<string, string>).map(([tenantId, why]) => ({
    tenantId,
    reason: why,
  }));
  return { state, probeInMs: Number(inMs ?? 0), trips: Number(trips), reason: reason ?? null, tenants };
}

/** The definition as stored: fixed order of fields, no secrets, so that equal definitions are equal texts. */
function definitionText({ name, sink, retry, schemaVersion, leaseMs, ...more }: TopicDefinition): [string, string | null] {
  const { concurrency, tenantConcurrency, ordering, fallback, compensation } = more;
  const { ratePerSecond, tenantRatePerSecond, concurrencyTotal, moneyField } = more;
  const shown = (config: SinkConfig | undefined) => config && { ...config, secrets: undefined };
  const text = JSON.stringify({
    name,
    sink: shown(sink),
    retry,
    schemaVersion,
    leaseMs,
    concurrency,
    tenantConcurrency,
    ordering,
    fallback: shown(fallback),
    compensation: shown(compensation),
    // Absent from the text where they are unset, so that it is the same as it was before there were any.
    ratePerSecond,
    tenantRatePerSecond,
    concurrencyTotal,
    moneyField,
  });
  const secrets: Secrets = { sink: sink.secrets, fallback: fallback?.secrets, compensation: compensation?.secrets };
  const kept = SINKS.filter((name) => secrets[name]);
  if (kept.length === 0) return [text, null];
  return [text, JSON.stringify(kept.length === 1 && kept[0] === "sink" ? secrets.sink : secrets)];
}

const UNSETTLED = (s: string) => `exists (select from ${s}.lane l where l.topic_id = t.id and (
    exists (select from ${s}.ready r where r.lane_id = l.id) or exists (select from ${s}.ready_ordered r where r.lane_id = l.id)
    or exists (select from ${s}.dead_letter d where d.lane_id = l.id and d.resolution = 0)
    or exists (select from ${s}.lease e where l.id = any (e.lanes))))`;

/** `onChange` hears that a topic changed. */
export function createTopics(db: Db, onChange: () => void): TopicStore {
  const { connection, s } = db;
  const listSql = perClock(
    (clock) => `select ${columns(clock)} from ${s}.topic where not deleted and ($1::text is null or name = $1) order by name`,
  );
  const read = async (name: string | null, now?: Date) =>
    (await connection.rows("read topics", listSql(now), [name], { reads: true })).map(record);

  const list = createListing(
    (text, values) => connection.rows("read topics", text, values, { reads: true, name: "mg_topics" }),
    s,
  );

  async function change(text: string, values: unknown[]): Promise<readonly Row[]> {
    const rows = await connection.rows("change a topic", text, values);
    db.lanes.forgetTopics();
    onChange();
    return rows;
  }

  return {
    async put(definition, source) {
      const [text, secrets] = definitionText(definition);
      const now = clockSql(undefined);
      await change(
        `insert into ${s}.topic as t (name, definition, secrets, source) values ($1, $2, $3, $4)
        on conflict (name) do update set definition = excluded.definition, secrets = excluded.secrets, source = excluded.source,
          disabled_reason = null, deleted = false, revision = t.revision + 1, updated_at = ${now},
          paused = t.paused and not t.deleted, breaker_state = case when t.deleted then 0 else t.breaker_state end,
          breaker_trips = case when t.deleted then 0 else t.breaker_trips end, breaker_reason = case when t.deleted then null else t.breaker_reason end,
          held_tenants = case when t.deleted then '{}' else t.held_tenants end
        where ($4 <> 'api' or t.source = 'api' or t.deleted)
          and (t.deleted or (t.disabled_reason is not null and $4 = 'api') or (t.definition, coalesce(t.secrets, ''), t.source) <> (excluded.definition, coalesce(excluded.secrets, ''), excluded.source))`,
        [definition.name, text, secrets, source],
      );
      const [stored] = await read(definition.name);
      return source === "api" && stored && stored.source !== "api" ? "read_only" : (stored as TopicRecord);
    },
    get: async (name, at) => (await read(name, at?.now))[0] ?? null,
    list: (at) => (at?.now ? read(null, at.now) : list()),
    async delete(name, source) {
      const [found] = await read(name);
      if (!found) return "not_found";
      if (source === "api" && found.source !== "api") return "read_only";
      const rows = await change(
        `update ${s}.topic t set deleted = true where name = $1 and not deleted and not ${UNSETTLED(s)} returning 1`,
        [name],
      );
      return rows.length > 0 ? "deleted" : "in_use";
    },
    async pause(name, paused) {
      const text = `update ${s}.topic set paused = $2::boolean, disabled_reason = case when $2::boolean then disabled_reason end, revision = revision + 1 where name = $1 and not deleted`;
      await change(text, [name, paused]);
      return (await read(name))[0] ?? null;
    },
    async disable(name, reason) {
      await change(`update ${s}.topic set disabled_reason = $2, revision = revision + 1 where name = $1`, [name, reason]);
    },
    ...createBreakers(db, change, read),
    ...createWorkers(db),
    ...createAllot(db),
  };
}
