/**
 * What was learned, on three levels, as weights that fade: each row is set down to the moment of its write, so what comes in any order and
 * from any process adds up to the same. Also the numbers of the whole engine.
 */

import type { Home, Row, Run } from "../../store/home.ts";
import { clockSql, epoch } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "../candidates/candidate-state.ts";
import { uningestedCount } from "../groups/groups-sql.ts";
import { tallySql } from "../groups/rolling-counts.ts";
import { membersOf } from "../rows.ts";
import type { Learned, OutcomeCount, RecoveryStats } from "./numbers.ts";

type Weights = Pick<OutcomeCount, "successes" | "failures" | "at">;

/** Past this many half-lives nothing is left (and PostgreSQL takes a number that is too small for an error). */
const HALF_LIVES_MAX = 60;

/** What weighs at `at_ms` of `of`, when the later of both moments has come; $1: the half-life. */
const share = (of: string, other: string) => `(case when ${other}.at_ms - ${of}.at_ms > ${HALF_LIVES_MAX} * $1::float8 then 0
    else power(2::float8, -greatest(0, ${other}.at_ms - ${of}.at_ms) / $1::float8) end)`;

const learnSql = (s: string) => `insert into ${s}.recovery_outcome as o (level, scope, action, successes, failures, at_ms)
  select x.* from unnest($2::text[], $3::text[], $4::text[], $5::float8[], $6::float8[], $7::float8[]) x
  on conflict (level, scope, action) do update set
    successes = o.successes * ${share("o", "excluded")} + excluded.successes * ${share("excluded", "o")},
    failures = o.failures * ${share("o", "excluded")} + excluded.failures * ${share("excluded", "o")},
    at_ms = greatest(o.at_ms, excluded.at_ms)`;

/** Adds up what goes to the same row, so that a statement meets each once, and sorts: writers wait in one direction only. */
export async function learnIn(
  s: string,
  run: Run,
  learned: readonly Learned[],
  halfLifeMs: number,
  now: Date | undefined,
): Promise<void> {
  const some = learned.filter(({ healed, failed, groupId }) => healed + failed > 0 && Number.isSafeInteger(groupId));
  if (some.length === 0) return;
  const text = `select f.id::text, g.id::text, g.topic, ${epoch(clockSql(now))} from ${s}.recovery_group f
    join ${s}.recovery_group g on g.id = coalesce(f.merged_into, f.id) where f.id = any ($1::bigint[])`;
  const groups = new Map((await run(text, [[...new Set(some.map((l) => l.groupId))]])).map((row) => [Number(row[0]), row]));
  const sums = new Map<string, { level: string; scope: string; action: string; healed: number; failed: number }>();
  let atMs = 0;
  for (const { groupId, action, healed, failed } of some) {
    const [, root, topic, seconds] = groups.get(groupId) ?? [];
    if (root === undefined) continue;
    atMs = Math.round(Number(seconds) * 1_000);
    for (const [level, scope] of [
      ["group", root],
      ["topic", topic],
      ["all", ""],
    ] as [string, string][]) {
      const name = JSON.stringify([level, scope, action]);
      const sum = sums.get(name) ?? { level, scope, action, healed: 0, failed: 0 };
      sums.set(name, { ...sum, healed: sum.healed + healed, failed: sum.failed + failed });
    }
  }
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
  if (rows.length === 0) return;
  await run(learnSql(s), [
    halfLifeMs,
    rows.map((r) => r.level),
    rows.map((r) => r.scope),
    rows.map((r) => r.action),
    rows.map((r) => r.healed),
    rows.map((r) => r.failed),
    rows.map(() => atMs),
  ]);
}

const outcomeOf = ([action, level, successes, failures, at]: Row): OutcomeCount => ({
  action: action as string,
  level: level as OutcomeCount["level"],
  successes: Number(successes),
  failures: Number(failures),
  at: Number(at),
});

const COLUMNS = "o.action, o.level, o.successes::text, o.failures::text, o.at_ms::text";
const ORDER = "order by o.action, array_position(array['group', 'topic', 'all'], o.level), o.scope";

function added<T extends Weights>(a: T, b: Weights, halfLifeMs: number): T {
  const at = Math.max(a.at, b.at);
  const [one, other] = [2 ** -((at - a.at) / halfLifeMs), 2 ** -((at - b.at) / halfLifeMs)];
  return { ...a, successes: a.successes * one + b.successes * other, failures: a.failures * one + b.failures * other, at };
}

/** Groups that were merged have rows of their own: those of one action and level are added up. */
function summed(rows: readonly OutcomeCount[], halfLifeMs: number): OutcomeCount[] {
  const found = new Map<string, OutcomeCount>();
  for (const row of rows) {
    const name = `${row.level} ${row.action}`;
    const sum = found.get(name);
    found.set(name, sum ? added(sum, row, halfLifeMs) : row);
  }
  return [...found.values()];
}

const statsSql = (s: string) => `select x.name, sum(x.n)::text from (${tallySql(s)}
  union all select 'uningested', ${uningestedCount(s, "$1")}) x group by 1`;

/** By one of the three states that a candidate's name in the tally is made of. */
function tally<K extends string>(names: readonly K[], counts: ReadonlyMap<string, number>, place: number): Record<K, number> {
  const sums = Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>;
  for (const [name, n] of counts) if (name.includes("/")) sums[name.split("/")[place] as K] += n;
  return sums;
}

export function createOutcomes(home: Home) {
  const { s } = home;
  const run = home.read("read outcomes");
  return {
    /** Of this group (or the one it was merged into), its topic, and everywhere; by action, the nearest level first. */
    async outcomes(groupId: number, halfLifeMs: number) {
      if (!Number.isSafeInteger(groupId)) return [];
      // Each level by its key: one condition for all three would read the table.
      const text = `with g as materialized (select g.id, g.topic from ${s}.recovery_group f
          join ${s}.recovery_group g on g.id = coalesce(f.merged_into, f.id) where f.id = $1::bigint)
        select ${COLUMNS} from (
          select o.* from g cross join lateral ${membersOf(s, "g.id")} x join ${s}.recovery_outcome o on o.level = 'group' and o.scope = x.id::text
          union all select o.* from g join ${s}.recovery_outcome o on o.level = 'topic' and o.scope = g.topic
          union all select o.* from g join ${s}.recovery_outcome o on o.level = 'all' and o.scope = '') o ${ORDER}`;
      return summed((await run(text, [groupId])).map(outcomeOf), halfLifeMs);
    },
    /** Adds outcomes on all levels; what was there fades with the half-life first. A clock that runs behind makes nothing grow. */
    learn: (learned: readonly Learned[], halfLifeMs: number, at?: At) =>
      home.transaction("learn", ({ run: inside }) => learnIn(s, inside, learned, halfLifeMs, at?.now)),
    /** Topics that start with one of `except` do not count as uningested. */
    async stats(except: readonly string[]): Promise<RecoveryStats> {
      const counts = new Map((await run(statsSql(s), [except])).map(([name, n]) => [name as string, Number(n)]));
      const all = await run(`select ${COLUMNS} from ${s}.recovery_outcome o where o.level = 'all' ${ORDER}`);
      const of = (name: string) => counts.get(name) ?? 0;
      return {
        groups: of("groups"),
        openGroups: of("open"),
        occurrences: of("occurrences"),
        decisions: tally(DECISIONS, counts, 0),
        evaluations: tally(EVALUATION_STATUSES, counts, 1),
        executions: tally(EXECUTION_STATUSES, counts, 2),
        outcomes: all.map(outcomeOf),
        uningested: of("uningested"),
      };
    },
  };
}
