/**
 * LOOK: where the sent messages of a redrive stand, what that means for each, and what is learned from it, in one transaction under the
 * token. The meaning is the seam's (`fateOf`); this reads many at once.
 */
import type { Resolution, Status } from "../../../message/message.ts";
import { isUuid } from "../../../platform/ids.ts";
import type { Learned } from "../../recovery.ts";
import { type Fate, fateOf, type Redrive, type RedriveCounts, type RedriveStore } from "../../redrive.ts";
import type { At } from "../../store.ts";
import { clockSql } from "../clock-sql.ts";
import { RESOLUTION_NAMES } from "../db.ts";
import { actOn } from "./act.ts";
import { learnIn } from "./outcomes.ts";
import { addCounts, stateCode, takeUnder } from "./redrive-rows.ts";
import { number } from "./rows.ts";
import { type Inside, type RecoveryDb, type Run, within } from "./run.ts";

interface How {
  readonly limit: number;
  readonly halfLifeMs: number;
  readonly quietMs: number;
}

interface Looked {
  readonly n: number;
  readonly messageId: string;
  readonly revision: number;
  readonly groupId: number | null;
  readonly fate: Fate | null;
}

/** As statements/view.ts tells it, without the body: $1 redrive, $2 limit, $3 quiet ms. */
const lookSql = (s: string, clock: string) => `with i as materialized (select i.* from ${s}.redrive_item i
    where i.redrive_id = $1::uuid and i.state = 1 order by i.looked_at nulls first, i.n limit $2::int)
  select i.n::text, i.message_id::text, i.revision::text, i.generation::text, i.group_id::text, (i.sent_at <= ${clock} - $3::float8 * interval '1 ms')::text,
    case when not exists (select from ${s}.message m where m.id = x.id) and not exists (select from ${s}.message_kept m where m.id = x.id) then null
      when exists (select from ${s}.ready r where r.id = x.id) or exists (select from ${s}.ready_ordered r where r.id = x.id) then 'pending'
      when exists (select from ${s}.attempt a where a.message_id = x.id and a.outcome in (1, 2)) then 'delivered'
      when d.resolution < 3 then 'dead' else 'processing' end,
    case when d.resolution < 3 then d.resolution end::text, coalesce(d.generation, 0)::text
  from i cross join lateral (select coalesce(i.carrier_id, i.message_id) as id) x left join lateral (select d.resolution, d.generation from ${s}.dead_letter d where d.id = x.id offset 0) d on true order by i.n`;

async function read(s: string, run: Run, { id, mode }: Redrive, { limit, quietMs }: How, clock: string): Promise<Looked[]> {
  return (await run(lookSql(s, clock), [id, limit, quietMs])).map((row) => {
    const [status, resolution] = [row[6] as Status | null, row[7]];
    const name: Resolution | null = resolution ? (RESOLUTION_NAMES[Number(resolution)] ?? null) : null;
    const seen = status === null ? null : { status, resolution: name, generation: Number(row[8]) };
    return {
      n: Number(row[0]),
      messageId: row[1] as string,
      revision: Number(row[2]),
      groupId: number(row[4]),
      fate: fateOf(mode, Number(row[3]), seen, row[5] === "true"),
    };
  });
}

/** $1 redrive, $2 items, $3 their new states or null, $4 reasons. */
const markSql = (s: string, clock: string) => `update ${s}.redrive_item i set (looked_at, state, reason, ended_at) = (
    select ${clock}, coalesce(x.state, i.state), coalesce(x.reason, i.reason), case when x.state is not null then ${clock} end
    from (select ($3::smallint[])[x.at] as state, ($4::text[])[x.at] as reason from (select array_position($2::int[], i.n) as at) x) x)
  where i.redrive_id = $1::uuid and i.n = any ($2::int[])`;

function learnedFrom({ action }: Redrive, looked: readonly Looked[]): Learned[] {
  const sums = new Map<number, Learned>();
  for (const { groupId, fate } of looked) {
    if (action === null || groupId === null || !fate?.learned) continue;
    const sum = sums.get(groupId) ?? { groupId, action, healed: 0, failed: 0 };
    sums.set(groupId, { ...sum, [fate.state]: sum[fate.state] + 1 });
  }
  return [...sums.values()];
}

async function look(
  s: string,
  { run, tell }: Inside,
  id: string,
  token: string,
  how: How,
  at: At,
): Promise<RedriveCounts | null> {
  const redrive = await takeUnder(s, run, id, token);
  if (!redrive) return null;
  const clock = clockSql(at.now);
  const looked = await read(s, run, redrive, how, clock);
  if (looked.length === 0) return redrive.counts;
  const ended = (state: Fate["state"]) => looked.filter(({ fate }) => fate?.state === state);
  await run(markSql(s, clock), [
    id,
    looked.map(({ n }) => n),
    looked.map(({ fate }) => (fate ? stateCode(fate.state) : null)),
    looked.map(({ fate }) => fate?.reason ?? null),
  ]);
  if (redrive.mode === "copy") {
    const originals = ended("healed").map(({ messageId, revision }) => ({ id: messageId, revision }));
    tell(await actOn(s, run, "resolve", originals, redrive, clock));
  }
  await learnIn(s, run, learnedFrom(redrive, looked), how.halfLifeMs, at.now);
  const [healed, failed] = [ended("healed").length, ended("failed").length];
  return addCounts(s, run, id, { sent: -(healed + failed), healed, failed });
}

export function createRedriveLook(db: RecoveryDb): Pick<RedriveStore, "look"> {
  return {
    async look(id, token, how, at = {}) {
      if (!isUuid(id)) return null;
      return within(db, "look at a redrive", (inside) => look(db.s, inside, id, token, how, at));
    },
  };
}
