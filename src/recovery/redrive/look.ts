/**
 * LOOK: where the sent messages of a redrive stand, what that means for each, and what is learned from it, in one transaction under the
 * token. The meaning is the seam's (`endingOf`); this reads many at once.
 */
import { RESOLUTIONS, type Resolution, type Status } from "../../message/message.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Home, Inside, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import type { Learned } from "../confidence/numbers.ts";
import { learnIn } from "../confidence/outcomes-sql.ts";
import { number } from "../rows.ts";
import { verdictOf } from "./next-step.ts";
import { type Ending, endingOf, type Redrive, type RedriveCounts } from "./redrive.ts";
import type { RedrivePlan } from "./request.ts";
import { ALL, addCounts, GROUP_COLUMNS, readRedrive, redriveGroupOf, stateCode, takeUnder } from "./rows.ts";

export interface LookHow {
  readonly limit: number;
  readonly quietMs: number;
  /** How the groups are judged by what was seen, and the topics whose receivers are down; absent: they are not. */
  readonly judge?: { readonly plan: RedrivePlan; readonly down: readonly string[] } | undefined;
}

interface Looked {
  readonly n: number;
  readonly groupNo: number;
  readonly messageId: string;
  readonly revision: number;
  readonly groupId: number | null;
  readonly ending: Ending | null;
}

/** Whether another redrive sent the message of `i` after it. */
const taken = (s: string) => `exists (select from ${s}.redrive_item o where o.message_id = i.message_id and o.sent_at is not null
      and o.sent_at >= i.sent_at and (o.sent_at, o.redrive_id) > (i.sent_at, i.redrive_id))`;

/** As statements/view.ts tells it, without the body: $1 redrive, $2 limit, $3 quiet ms. */
const lookSql = (s: string, clock: string, watches: boolean) => `with i as materialized (select i.* from ${s}.redrive_item i
    where i.redrive_id = $1::uuid and i.state = 1 order by i.looked_at nulls first, i.n limit $2::int)
  select i.n::text, i.message_id::text, i.revision::text, i.generation::text, i.group_id::text, (i.sent_at <= ${clock} - $3::float8 * interval '1 ms')::text,
    case when not exists (select from ${s}.message m where m.id = x.id) and not exists (select from ${s}.message_kept m where m.id = x.id) then null
      when exists (select from ${s}.ready r where r.id = x.id) or exists (select from ${s}.ready_ordered r where r.id = x.id) then 'pending'
      when exists (select from ${s}.attempt a where a.message_id = x.id and a.outcome in (1, 2)) then 'delivered'
      when d.resolution < 3 then 'dead' else 'processing' end,
    case when d.resolution < 3 then d.resolution end::text, coalesce(d.generation, 0)::text, ${watches ? taken(s) : "false"}::text, i.group_no::text
  from i cross join lateral (select coalesce(i.carrier_id, i.message_id) as id) x left join lateral (select d.resolution, d.generation from ${s}.dead_letter d where d.id = x.id offset 0) d on true order by i.n`;

async function read(
  s: string,
  run: Run,
  { redriveId: id, mode }: Redrive,
  { limit, quietMs }: LookHow,
  clock: string,
): Promise<Looked[]> {
  return (await run(lookSql(s, clock, mode === "watch"), [id, limit, quietMs])).map((row) => {
    const [status, resolution] = [row[6] as Status | null, row[7]];
    const name: Resolution | null = resolution ? (RESOLUTIONS[Number(resolution)] ?? null) : null;
    const seen = status === null ? null : { status, resolution: name, generation: Number(row[8]) };
    return {
      n: Number(row[0]),
      groupNo: Number(row[10]),
      messageId: row[1] as string,
      revision: Number(row[2]),
      groupId: number(row[4]),
      ending: endingOf(mode, Number(row[3]), seen, row[5] === "true", row[9] === "true"),
    };
  });
}

/** $1 redrive, $2 items, $3 their new states or null, $4 reasons. */
const markSql = (s: string, clock: string) => `update ${s}.redrive_item i set (looked_at, state, reason, ended_at) = (
    select ${clock}, coalesce(x.state, i.state), coalesce(x.reason, i.reason), case when x.state is not null then ${clock} end
    from (select ($3::smallint[])[x.at] as state, ($4::text[])[x.at] as reason from (select array_position($2::int[], i.n) as at) x) x)
  where i.redrive_id = $1::uuid and i.n = any ($2::int[])`;

function learnedFrom({ redriveId, action }: Redrive, looked: readonly Looked[]): Learned[] {
  const sums = new Map<number, Learned>();
  for (const { groupId, ending } of looked) {
    if (action === null || groupId === null || !ending?.learned) continue;
    const { healed, failed } = sums.get(groupId) ?? { healed: 0, failed: 0 };
    const heals = ending.state === "healed" ? 1 : 0;
    sums.set(groupId, { groupId, action, redriveId, healed: healed + heals, failed: failed + 1 - heals });
  }
  return [...sums.values()];
}

/**
 * Judges the groups of what was seen, and those whose canary was whole while their receiver was down. One that was inconclusive gets
 * another canary once its receiver is back.
 */
async function judge(s: string, run: Run, id: string, seen: readonly number[], { plan, down }: NonNullable<LookHow["judge"]>) {
  await run(
    `update ${s}.redrive_group set verdict = null, reason = null, canary = $3::int, base_healed = healed, base_failed = failed
      where redrive_id = $1::uuid and verdict = 'inconclusive' and waiting > 0 and topic <> all ($2::text[])`,
    [id, down, plan.canary === 0 ? ALL : plan.canary],
  );
  const text = `select ${GROUP_COLUMNS} from ${s}.redrive_group g where g.redrive_id = $1::uuid
    and (g.no = any ($2::int[]) or (g.verdict is null and g.canary = 0 and g.sent = 0))`;
  const judged = (await run(text, [id, seen])).map(redriveGroupOf).flatMap((group) => {
    const verdict = verdictOf(plan, group, down.includes(group.topic));
    return verdict === null ? [] : [{ no: group.no, ...verdict }];
  });
  if (judged.length === 0) return;
  await run(
    `update ${s}.redrive_group g set verdict = j.verdict, reason = j.reason from unnest($2::int[], $3::text[], $4::text[]) j(no, verdict, reason)
      where g.redrive_id = $1::uuid and g.no = j.no`,
    [id, judged.map(({ no }) => no), judged.map(({ verdict }) => verdict), judged.map(({ reason }) => reason)],
  );
}

async function look(s: string, inside: Inside, id: string, token: string, how: LookHow, at: At): Promise<RedriveCounts | null> {
  const { run } = inside;
  const redrive = await takeUnder(s, run, id, token);
  if (!redrive) return null;
  const clock = clockSql(at.now);
  const looked = redrive.counts.sent === 0 ? [] : await read(s, run, redrive, how, clock);
  const counts = looked.length === 0 ? redrive.counts : await end(s, inside, redrive, looked, at);
  if (how.judge) await judge(s, run, id, [...new Set(looked.map(({ groupNo }) => groupNo))], how.judge);
  return counts;
}

async function end(s: string, { run, intervene }: Inside, redrive: Redrive, looked: readonly Looked[], at: At) {
  const { redriveId: id } = redrive;
  const clock = clockSql(at.now);
  const ended = (state: Ending["state"]) => looked.filter(({ ending }) => ending?.state === state);
  await run(markSql(s, clock), [
    id,
    looked.map(({ n }) => n),
    looked.map(({ ending }) => (ending ? stateCode(ending.state) : null)),
    looked.map(({ ending }) => ending?.reason ?? null),
  ]);
  if (redrive.mode === "copy") {
    const originals = ended("healed").map(({ messageId, revision }) => ({ id: messageId, revision }));
    await intervene("resolve", originals, redrive, at);
  }
  await learnIn(s, run, learnedFrom(redrive, looked), at.now);
  const moves = looked.flatMap(({ groupNo, ending }) => (ending ? [{ groupNo, from: "sent" as const, to: ending.state }] : []));
  return addCounts(s, run, id, moves);
}

/**
 * Copies that died, those looked at longest ago first, whose originals are locked in the order of their ids, as by every
 * statement that locks many; $1 limit. Waits: the original stands as it was frozen.
 */
const againSql = (
  s: string,
) => `with i as materialized (select i.redrive_id, i.n, i.message_id, i.revision, i.carrier_id from ${s}.redrive_item i
    where i.state = 3 and i.carrier_id is not null and i.looked_at is not null order by i.looked_at limit $1::int for no key update skip locked),
  o as materialized (select * from i order by i.message_id)
  select o.redrive_id::text, o.n::text, o.message_id::text, o.revision::text, (d.id is not null)::text, (m.id is not null)::text,
    exists (select from ${s}.attempt a where a.message_id = o.carrier_id and a.outcome in (1, 2))::text
  from o left join lateral (select d.id from ${s}.dead_letter d where d.id = o.message_id and d.resolution = 0 and d.revision = o.revision
      for no key update) d on true
    left join lateral (select m.id from ${s}.message m where m.id = o.carrier_id union all
      select m.id from ${s}.message_kept m where m.id = o.carrier_id limit 1) m on true`;

/** $1 redrive, $2 items, $3 those of them that are looked at once more. */
const againMarkSql = (s: string, clock: string) => `update ${s}.redrive_item i
  set looked_at = case when i.n = any ($3::int[]) then ${clock} end where i.redrive_id = $1::uuid and i.n = any ($2::int[])`;

async function lookAgain(s: string, { run, intervene }: Inside, limit: number, at: At): Promise<number> {
  const clock = clockSql(at.now);
  const looked = (await run(againSql(s), [limit])).map((row) => ({
    redriveId: row[0] as string,
    n: Number(row[1]),
    id: row[2] as string,
    revision: Number(row[3]),
    waits: row[4] === "true",
    kept: row[5] === "true",
    delivered: row[6] === "true",
  }));
  for (const redriveId of new Set(looked.map((one) => one.redriveId))) {
    const mine = looked.filter((one) => one.redriveId === redriveId);
    const healed = mine.filter(({ waits, delivered }) => waits && delivered);
    const redrive = (await readRedrive(s, run, redriveId)) as Redrive;
    if (redrive.mode === "copy") await intervene("resolve", healed, redrive, at);
    const again = mine.filter(({ waits, kept, delivered }) => waits && kept && !delivered);
    await run(againMarkSql(s, clock), [redriveId, mine.map(({ n }) => n), again.map(({ n }) => n)]);
  }
  return looked.length;
}

export function createRedriveLook(home: Home) {
  return {
    /**
     * Looks at sent items, those looked at longest ago first, and ends those whose ending is known (`endingOf`), with what was learned and
     * the originals of delivered copies in the same write. Null: the token is stale. A watched message that a later redrive took up is
     * that one's from then on.
     */
    async look(id: string, token: string, how: LookHow, at: At = {}) {
      if (!isUuid(id)) return null;
      return home.transaction("look at a redrive", (inside) => look(home.s, inside, id, token, how, at));
    },
    /**
     * Looks once more at copies that had died: where one was delivered after all, the original is resolved, if it still has its revision; the
     * item stays failed. Returns how many were looked at. Needs no token: the second caller finds nothing left to do.
     */
    lookAgain: (limit: number, at: At = {}) =>
      home.transaction("look at copies again", (inside) => lookAgain(home.s, inside, limit, at)),
  };
}
