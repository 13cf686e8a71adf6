/**
 * What the whole system's gauges are read from. Where the store is PostgreSQL: a statement for each source, of rooms that keep tables of
 * their own. A statement costs the same at any size, or is an estimate where it would not; one that fails takes only its own gauges away.
 */
import { createLevelSources, type Level, type LevelSource, type LevelSources } from "../observe/level-sources.ts";
import type { MetricName } from "../observe/table.ts";
import type { Clock } from "../platform/clock.ts";
import { type Conservation, conservationOf } from "../store/conservation.ts";
import { type Home, homeOf } from "../store/home.ts";
import type { Store } from "../store/store.ts";

/** Rows of a name, a value (null: there is none) and labels. */
export interface SqlSource {
  readonly name: string;
  readonly sql: (s: string) => string;
}

/** A scrape does not wait for it; a database under load is not asked for longer. */
const PATIENCE_MS = 3_000;
/** Counted exactly up to here; beyond it the planner's estimate. */
const EXACT_MAX = 100_000;

const CURRENT = (s: string) => `from ${s}.recovery_candidate c join ${s}.recovery_group g on g.id = c.group_id
  where c.decision = 'pending' and c.evaluation_status = 'evaluated' and c.execution_status = 'pending' and c.action is not null
    and g.merged_into is null and (g.resolved_at is null or g.regressed_at is not null) and (g.open > 0 or g.reports > 0)
    and not exists (select from ${s}.recovery_candidate n where n.group_id = c.group_id and n.round > c.round)`;

const recent = (s: string, moment: string) => `select count(*) from ${s}.recovery_group g
  where g.last_at > statement_timestamp() - interval '1 hour' and g.${moment} > statement_timestamp() - interval '1 hour' and g.merged_into is null`;

const groups: SqlSource = {
  name: "groups",
  sql: (s) => `with t as (select name, sum(n) as n from ${s}.recovery_tally group by name)
  select 'makegood_groups', coalesce((select n from t where name = 'groups'), 0), 'all'
  union all select 'makegood_groups', greatest(coalesce((select n from t where name = 'open'), 0), 0), 'open'
  union all select 'makegood_candidates', coalesce(sum(t.n), 0), d.decision
    from unnest(array['pending', 'approved', 'rejected']) d(decision) left join t on t.name like d.decision || '/%' group by 3
  union all select 'makegood_groups_new', (${recent(s, "first_at")}), null
  union all select 'makegood_groups_regressed', (${recent(s, "regressed_at")}), null
  union all select 'makegood_approvals_waiting', (select count(*) ${CURRENT(s)}), null
  union all select 'makegood_oldest_undecided_seconds',
    (select extract(epoch from statement_timestamp() - min(c.created_at)) ${CURRENT(s)}), null
  union all select 'makegood_redrives', count(r.id), x.status from unnest(array['planned', 'running', 'paused']) x(status)
    left join ${s}.redrive r on r.status = x.status group by 3`,
};

const claims: SqlSource = {
  name: "claims",
  sql: (
    s,
  ) => `select 'recovery_db_queue_stalled', count(*), null::text from ${s}.lease l cross join lateral unnest(l.ids, l.lanes) u(id, lane_id)
  join ${s}.lane n on n.id = u.lane_id join ${s}.topic t on t.id = n.topic_id
  where l.until < statement_timestamp() and t.name = 'recovery/evaluate'
    and not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id)
  union all select 'makegood_lock_active', 1, name from ${s}.leader where until > statement_timestamp()`,
};

/** `from`: as far as it is counted; `table`: whose estimate stands for more, partitions included. */
const size = (metric: MetricName, from: string, table: string) => `select '${metric}',
  case when x.n <= ${EXACT_MAX} then x.n else greatest(x.n, (select sum(p.reltuples) from pg_class p
    where p.oid = '${table}'::regclass or p.oid in (select relid from pg_partition_tree('${table}'::regclass) where isleaf))) end, null::text
  from (select count(*) as n from (select 1 from ${from} limit ${EXACT_MAX + 1}) y) x`;

const sizes: SqlSource = {
  name: "sizes",
  sql: (s) => `${size("m10_archive_size", `${s}.dead_letter where resolution in (1, 2)`, `${s}.dead_letter`)}
  union all ${size("m10_replay_log_size", `${s}.provenance`, `${s}.provenance`)}`,
};

/** Of the messages of the store itself: a home beside another store has none of them. */
const proof: SqlSource = {
  name: "conservation",
  sql: (s) => `select 'makegood_conservation_state', (c.state = x.state)::int::numeric, x.state
    from ${s}.conservation c cross join unnest(array['whole', 'broken', 'unknown']) x(state)
  union all select 'makegood_conservation_divergences', count(*), null from ${s}.conservation_divergence
  union all select 'makegood_conservation_age_seconds', extract(epoch from statement_timestamp() - c.passed_at), null from ${s}.conservation c`,
};

/** The same of a store that has no tables. */
const told = (conservation: Conservation, clock: Clock): LevelSource => ({
  name: "conservation",
  async read() {
    const report = await conservation.report();
    if (!report) return [];
    const states = ["whole", "broken", "unknown"].map((state): Level => {
      return { name: "makegood_conservation_state", value: report.state === state ? 1 : 0, labels: [state] };
    });
    const { divergences, passedAt } = report;
    const age = passedAt === null ? [] : [(clock.wallMs() - passedAt.getTime()) / 1_000];
    return [
      ...states,
      { name: "makegood_conservation_divergences", value: divergences.length, labels: [] },
      ...age.map((value): Level => ({ name: "makegood_conservation_age_seconds", value, labels: [] })),
    ];
  },
});

const SOURCES: readonly SqlSource[] = [groups, claims, sizes];

/** `recoveryHome`: where the records of recovery are, beside a store that keeps none. */
export function openLevels(
  { store, recoveryHome }: { store: Store; recoveryHome?: Store | undefined },
  clock: Clock,
): LevelSources {
  const levels = createLevelSources(clock);
  const own = homeOf(store);
  const home = own ?? (recoveryHome ? homeOf(recoveryHome) : null);
  if (home) for (const source of SOURCES) levels.add(read(home, source));
  const conservation = conservationOf(store);
  if (own) levels.add(read(own, proof));
  else if (conservation) levels.add(told(conservation, clock));
  return levels;
}

function read(home: Home, { name, sql }: SqlSource): LevelSource {
  return {
    name,
    async read() {
      const rows = await home.read(`levels ${name}`)(sql(home.s), [], { patienceMs: PATIENCE_MS });
      return rows.flatMap(([metric, value, ...labels]): Level[] =>
        value == null ? [] : [{ name: metric as MetricName, value: Number(value), labels: labels.flatMap((one) => one ?? []) }],
      );
    },
  };
}
