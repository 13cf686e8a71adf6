/** What executions showed: a row for each run of a redrive and each group it touches, revised while it goes on. */
import type { Home, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "../candidates/candidate-state.ts";
import { columns, flag, int, intOrNull, text, textOrNull } from "../columns.ts";
import { uningestedCount } from "../groups/groups-sql.ts";
import { tallySql } from "../groups/rolling-counts.ts";
import { type NewProvenance, SYSTEM } from "../provenance.ts";
import { LIST_MS_MAX } from "../redrive/redrive.ts";
import { membersOf } from "../rows.ts";
import { totalsOf } from "./levels.ts";

/** I10: how many of the newest are read, of a group and of all. Those before them have faded, or are many. */
const READ = { group: 200, all: 1_000 } as const;
/** I10: of the messages accepted since the deaths so many are looked at for one that was delivered. */
const SINCE_MAX = 1_000;

/** The least id that a message accepted at that moment can have. */
const idAt = (at: string) => `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`;

/** I10: of a group's lines on record so many are looked at for one that took off its hold. */
const LINES_MAX = 1_000;

/** A hold that was taken off since the deaths of `x`. */
const releasedSql = (
  s: string,
) => `(select 'the group was held until ' || p.actor || ' released it' from (select p.* from ${s}.recovery_provenance p
        where p.group_id = x.group_id order by p.id desc limit ${LINES_MAX}) p where p.event = 'released' and p.at > x.first_at order by p.id desc limit 1)`;

/** `x`: the deaths of each group that a redrive ($1) has left to do; `n`: of each topic, the newest message since that was delivered, asked once for all groups. */
const sinceSql = (s: string) => `x as materialized (select i.group_id, min(d.died_at) as first_at, max(d.died_at) as last_at
    from ${s}.redrive r join ${s}.redrive_item i on i.redrive_id = r.id and i.state = 0 and i.group_id is not null
    join ${s}.dead_letter d on d.id = i.message_id where r.id = $1::uuid and r.action is not null group by 1),
  n as materialized (select distinct on (l.topic_id) l.topic_id, m.id
    from (select m.id, m.lane_id from ${s}.message m where m.id >= (select ${idAt("min(x.last_at)")} from x) order by m.id desc limit ${SINCE_MAX}) m
    join ${s}.lane l on l.id = m.lane_id
    where exists (select from ${s}.attempt a where a.message_id = m.id and a.outcome in (1, 2)) order by l.topic_id, m.id desc)`;

/** $1 redrive, $2 whether a person runs it. What waits is observed from now on; a topic changes when a person puts another definition. */
const beginSql = (s: string, clock: string) => `with ${sinceSql(s)}
  insert into ${s}.recovery_observation
    (redrive_id, run, group_id, action, by_person, repair, breaker_open, delivered_since, down_ms, at)
  select r.id, r.version, x.group_id, r.action, $2::boolean,
    coalesce(r.repair, case when t.updated_at > x.first_at then 'topic ' || t.name || ' was changed' end,
      case when g.held_by is not null then 'the group was held for ' || g.held_by end, ${releasedSql(s)}),
    coalesce(t.breaker_state <> 0, false), y.delivered, case when not y.delivered then extract(epoch from ${clock} - x.first_at) * 1000 end, ${clock}
  from ${s}.redrive r cross join x
  join ${s}.recovery_group g on g.id = x.group_id
  left join ${s}.topic t on t.name = g.topic
  left join n on n.topic_id = t.id
  cross join lateral (select coalesce(n.id >= ${idAt("x.last_at")}, false) as delivered) y
  where r.id = $1::uuid
  on conflict do nothing`;

/** When a redrive begins to run, and when it is resumed. */
export async function beginObserving(s: string, run: Run, id: string, person: boolean, clock: string): Promise<void> {
  await run(beginSql(s, clock), [id, person], { patienceMs: LIST_MS_MAX });
}

/** Whether what these lines tell of was asked for, and did not begin by itself. */
export const byPerson = (lines: readonly NewProvenance[]): boolean => lines.some(({ actorType }) => actorType !== "system");

/** $1–$6 lists. Where nothing was begun (a redrive of the version before), what is known now has to do. */
const learnSql = (s: string, clock: string) => `insert into ${s}.recovery_observation as o
    (redrive_id, run, group_id, action, by_person, repair, breaker_open, delivered_since, healed, failed, at)
  select x.redrive_id, coalesce((select max(b.run) from ${s}.recovery_observation b where b.redrive_id = x.redrive_id and b.group_id = x.group_id), 0),
    x.group_id, x.action, coalesce(r.actor <> '${SYSTEM.actor}', false), x.repair, false, true, x.healed, x.failed, ${clock}
  from (select coalesce(x.redrive_id, gen_random_uuid()) as redrive_id, x.group_id, x.action, x.repair, x.healed, x.failed
    from unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) x(redrive_id, group_id, action, repair, healed, failed)) x
  join ${s}.recovery_group g on g.id = x.group_id left join ${s}.redrive r on r.id = x.redrive_id
  order by x.group_id
  on conflict (redrive_id, group_id, run) do update set healed = o.healed + excluded.healed, failed = o.failed + excluded.failed, at = excluded.at`;

/** What became of messages of a group that an execution touched, beyond what was known before. */
export interface Learned extends Pick<Observation, "groupId" | "action" | "healed" | "failed"> {
  /** The execution's redrive; absent: an execution of its own. */
  readonly redriveId?: string | undefined;
  /** What was repaired before it. */
  readonly repair?: string | undefined;
}

/** Each group at most once for a redrive. */
export async function learnIn(s: string, run: Run, learned: readonly Learned[], now: Date | undefined): Promise<void> {
  const some = learned.filter(({ healed, failed, groupId }) => healed + failed > 0 && Number.isSafeInteger(groupId));
  if (some.length === 0) return;
  const list = <T>(of: (each: Learned) => T): T[] => some.map(of);
  await run(learnSql(s, clockSql(now)), [
    list((each) => each.redriveId ?? null),
    list(({ groupId }) => groupId),
    list(({ action }) => action),
    list(({ repair }) => repair ?? null),
    list(({ healed }) => healed),
    list(({ failed }) => failed),
  ]);
}

/** Of `recovery_observation o`, of group `g`. */
const OBSERVATION = columns({
  groupId: int("g.id"),
  /** Of the group; null: it was not evaluated yet. */
  cause: textOrNull("g.cause"),
  action: text("o.action"),
  /** Messages whose ending is known. */
  healed: int("o.healed"),
  failed: int("o.failed"),
  /** It did not begin by itself. */
  byPerson: flag("o.by_person"),
  /** What was repaired between the deaths and the execution, in words; null: nothing that is known of. */
  repair: textOrNull("o.repair"),
  /** As it stood when the execution began. */
  breakerOpen: flag("o.breaker_open"),
  /** Whether a message that was accepted after the deaths was delivered before the execution began. */
  deliveredSince: flag("o.delivered_since"),
  /** From the first death to the execution, where nothing was delivered since; else null. */
  downMs: intOrNull("o.down_ms"),
  /** When it last changed, in milliseconds since the epoch. */
  at: int("round(extract(epoch from o.at) * 1000)"),
});
export type Observation = ReturnType<(typeof OBSERVATION)["of"]>;

/** Newest first; $1: a group or null. */
const readSql = (
  s: string,
) => `with own as (select o.* from ${membersOf(s, `(select coalesce(f.merged_into, f.id) from ${s}.recovery_group f where f.id = $1::bigint)`)} x
      join ${s}.recovery_observation o on o.group_id = x.id and o.healed + o.failed > 0 order by o.at desc limit ${READ.group}),
    newest as (select o.* from ${s}.recovery_observation o where o.healed + o.failed > 0 order by o.at desc limit ${READ.all})
  select ${OBSERVATION.list} from (select * from own union select * from newest) o
  join ${s}.recovery_group f on f.id = o.group_id join ${s}.recovery_group g on g.id = coalesce(f.merged_into, f.id) order by o.at desc, o.redrive_id`;

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
    /** Of this group (or the one it was merged into; null: of none in particular) and of all others, the newest first. */
    async observations(groupId: number | null): Promise<Observation[]> {
      return (await run(readSql(s), [Number.isSafeInteger(groupId) ? groupId : null])).map(OBSERVATION.of);
    },
    learn: (learned: readonly Learned[], at?: At) =>
      home.transaction("learn", ({ run: inside }) => learnIn(s, inside, learned, at?.now)),
    /** What the group's failures come from; observations of other groups with the same cause tell about it. */
    async setCause(groupId: number, cause: string): Promise<void> {
      const text = `update ${s}.recovery_group set cause = $2 where id = $1::bigint and cause is distinct from $2`;
      await home.write("set a cause")(text, [groupId, cause]);
    },
    /** Executions that began by themselves since, and how many of them tried another action than the suggestion. */
    async automatic(sinceMs: number, at?: At): Promise<{ readonly executions: number; readonly explored: number }> {
      const text = `select count(*)::text, (count(*) filter (where c.evaluation::json ->> 'explored' is not null))::text from ${s}.recovery_candidate c
        where c.executed_by = '${SYSTEM.actor}' and c.began_at > ${clockSql(at?.now)} - $1::float8 * interval '1 ms'`;
      const [[executions, explored] = []] = await run(text, [sinceMs]);
      return { executions: Number(executions), explored: Number(explored) };
    },
    /** Candidates of all rounds; merged groups count where they are now. Topics that start with one of `except` do not count as uningested. */
    async stats(except: readonly string[]) {
      const counts = new Map((await run(statsSql(s), [except])).map(([name, n]) => [name as string, Number(n)]));
      const observations = (await run(readSql(s), [null])).map(OBSERVATION.of);
      const of = (name: string) => counts.get(name) ?? 0;
      return {
        groups: of("groups"),
        openGroups: of("open"),
        occurrences: of("occurrences"),
        decisions: tally(DECISIONS, counts, 0),
        evaluations: tally(EVALUATION_STATUSES, counts, 1),
        executions: tally(EXECUTION_STATUSES, counts, 2),
        outcomes: totalsOf(observations),
        uningested: of("uningested"),
      };
    },
  };
}
