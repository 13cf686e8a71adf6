/** LOOK: where the sent messages of a redrive stand, what that means for each, and what is learned from it, in one transaction. */
import { type MessageView, RESOLUTIONS, type Resolution, type Status } from "../../message/message.ts";
import type { Fence } from "../../platform/job.ts";
import type { Home, Inside, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { columns, flag, int, intOrNull, text, textOrNull } from "../columns.ts";
import type { Learned } from "../confidence/outcomes-sql.ts";
import { learnIn } from "../confidence/outcomes-sql.ts";
import { verdictOf } from "./next-step.ts";
import { moveItems, REDRIVE_GROUP, type Redrive, type RedriveMode, readRedrive, takeUnder } from "./redrive.ts";
import { judgeAnew } from "./redrive-sql.ts";
import { planOf } from "./request.ts";

/** What became of a message, as it stands. */
export type Seen = Pick<MessageView, "status" | "resolution" | "generation">;

/** `learned` false: it tells nothing about the action. */
const ends = (state: "healed" | "failed" | "skipped", reason: string, learned = true) => ({ state, reason, learned });

/**
 * `seen` is the message that carries the effect (for new_key and copy the carrier, else the message itself; null: it is not there any
 * more, so it was settled long ago); `generation` is the item's. `quiet`: the quiet time has passed since it was sent. `taken`: a later
 * redrive took up a watched message. Null: not known yet.
 */
export function endingOf(mode: RedriveMode, generation: number, seen: Seen | null, quiet: boolean, taken = false) {
  // Whatever becomes of it is the work of the other one: two that claim it would both learn from it.
  if (mode === "watch" && taken) return ends("skipped", "taken_over", false);
  return known(mode, generation, seen, quiet) ?? (mode === "watch" && quiet ? ends("skipped", "not_known", false) : null);
}

function known(mode: RedriveMode, generation: number, seen: Seen | null, quiet: boolean) {
  if (seen === null) return ends("healed", "pruned", false);
  // What a person ended or opened is done; only what an action resolved may still show that it should not have been.
  if (mode === "discard") return ends("healed", "discarded", false);
  if (mode === "reopen") return ends("healed", "reopened", false);
  if (mode === "resolve") {
    if (seen.status !== "dead" || seen.resolution !== "resolved") return ends("failed", "reverted");
    return quiet ? ends("healed", "resolved") : null;
  }
  // A person replayed it once more: the generation that this redrive began did not deliver it.
  if (mode === "replay" && seen.generation > generation + 1) return ends("failed", "replayed_again");
  if (seen.status === "delivered") return ends("healed", "delivered");
  if (seen.status !== "dead") return null;
  if (seen.resolution === "resolved") return ends("healed", "resolved");
  if (seen.resolution === "discarded") return ends("failed", "discarded");
  // A watched one lies where it lay; only a death of a later generation is news.
  if (mode === "watch" && seen.generation <= generation) return null;
  return ends("failed", "dead_again");
}

/** Of `redrive_item i`, the message `x` that carries its effect, and that one's dead letter `d`, as statements/view.ts tells it; $3 quiet ms. */
const sentItem = (s: string, clock: string, watches: boolean) =>
  columns({
    n: int("i.n"),
    groupNo: int("i.group_no"),
    id: text("i.message_id::text"),
    revision: int("i.revision"),
    generation: int("i.generation"),
    groupId: intOrNull("i.group_id"),
    quiet: flag(`i.sent_at <= ${clock} - $3::float8 * interval '1 ms'`),
    status: textOrNull<Status>(`case when not exists (select from ${s}.message m where m.id = x.id)
        and not exists (select from ${s}.message_kept m where m.id = x.id) then null
      when exists (select from ${s}.ready r where r.id = x.id) or exists (select from ${s}.ready_ordered r where r.id = x.id) then 'pending'
      when exists (select from ${s}.attempt a where a.message_id = x.id and a.outcome in (1, 2)) then 'delivered'
      when d.resolution < 3 then 'dead' else 'processing' end`),
    resolution: intOrNull("case when d.resolution < 3 then d.resolution end"),
    seenGeneration: int("coalesce(d.generation, 0)"),
    /** Another redrive sent its message after it. */
    taken: flag(
      watches
        ? `exists (select from ${s}.redrive_item o where o.message_id = i.message_id and o.sent_at is not null
      and o.sent_at >= i.sent_at and (o.sent_at, o.redrive_id) > (i.sent_at, i.redrive_id))`
        : "false",
    ),
  });

/** Those looked at longest ago; $1 redrive, $2 limit. */
async function read(s: string, run: Run, { redriveId, mode }: Redrive, { limit, quietMs }: LookHow, clock: string) {
  const item = sentItem(s, clock, mode === "watch");
  const rows = await run(
    `with i as materialized (select i.* from ${s}.redrive_item i
      where i.redrive_id = $1::uuid and i.state = 1 order by i.looked_at nulls first, i.n limit $2::int)
    select ${item.list} from i cross join lateral (select coalesce(i.carrier_id, i.message_id) as id) x
      left join lateral (select d.resolution, d.generation from ${s}.dead_letter d where d.id = x.id offset 0) d on true order by i.n`,
    [redriveId, limit, quietMs],
  );
  return rows.map((row) => {
    const { status, resolution, seenGeneration, generation, quiet, taken, ...found } = item.of(row);
    const name: Resolution | null = resolution === null ? null : (RESOLUTIONS[resolution] ?? null);
    const seen = status === null ? null : { status, resolution: name, generation: seenGeneration };
    return { ...found, ending: endingOf(mode, generation, seen, quiet, taken) };
  });
}

type Looked = Awaited<ReturnType<typeof read>>[number];

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
async function judge(s: string, run: Run, redrive: Redrive, looked: readonly Looked[], down: readonly string[]): Promise<void> {
  const { redriveId: id } = redrive;
  await judgeAnew(s, run, redrive, "verdict = 'inconclusive' and waiting > 0 and topic <> all ($3::text[])", [down]);
  const text = `select ${REDRIVE_GROUP.list} from ${s}.redrive_group g where g.redrive_id = $1::uuid
    and (g.no = any ($2::int[]) or (g.verdict is null and g.canary = 0 and g.sent = 0))`;
  const rows = await run(text, [id, [...new Set(looked.map(({ groupNo }) => groupNo))]]);
  const judged = rows.flatMap((row) => {
    const group = REDRIVE_GROUP.of(row);
    const verdict = verdictOf(planOf(redrive.plan), group, down.includes(group.topic));
    return verdict === null ? [] : [{ no: group.no, ...verdict }];
  });
  if (judged.length === 0) return;
  await run(
    `update ${s}.redrive_group g set verdict = j.verdict, reason = j.reason from unnest($2::int[], $3::text[], $4::text[]) j(no, verdict, reason)
      where g.redrive_id = $1::uuid and g.no = j.no`,
    [id, judged.map(({ no }) => no), judged.map(({ verdict }) => verdict), judged.map(({ reason }) => reason)],
  );
}

export interface LookHow {
  readonly limit: number;
  readonly quietMs: number;
  /** Topics whose receivers are down: what failed there says nothing about its group. */
  readonly down?: readonly string[];
}

async function look(s: string, inside: Inside, id: string, token: string, how: LookHow, at: At) {
  const { run } = inside;
  const redrive = await takeUnder(s, run, id, token);
  if (!redrive) return null;
  const looked = redrive.counts.sent === 0 ? [] : await read(s, run, redrive, how, clockSql(at.now));
  const counts = looked.length === 0 ? redrive.counts : await end(s, inside, redrive, looked, at);
  await judge(s, run, redrive, looked, how.down ?? []);
  return counts;
}

async function end(s: string, { run, intervene }: Inside, redrive: Redrive, looked: readonly Looked[], at: At) {
  const { redriveId, mode } = redrive;
  const healed = looked.filter(({ ending }) => ending?.state === "healed");
  if (mode === "copy") await intervene("resolve", healed, redrive, at);
  await learnIn(s, run, learnedFrom(redrive, looked), at.now);
  const moved = looked.map(({ ending, ...item }) => ({ ...item, to: ending?.state ?? null, reason: ending?.reason ?? null }));
  return moveItems(s, run, redriveId, "sent", moved, at);
}

/** Of item `o`, its original's dead letter `d` if that stands as it was frozen, and its copy `m`. */
const copied = (s: string) =>
  columns({
    redriveId: text("o.redrive_id::text"),
    n: int("o.n"),
    id: text("o.message_id::text"),
    revision: int("o.revision"),
    waits: flag("d.id is not null"),
    kept: flag("m.id is not null"),
    delivered: flag(`exists (select from ${s}.attempt a where a.message_id = o.carrier_id and a.outcome in (1, 2))`),
  });

/**
 * Copies that died, those looked at longest ago first, whose originals are locked in the order of their ids, as by every
 * statement that locks many; $1 limit.
 */
const againSql = (s: string, list: string) => `with i as materialized (
    select i.redrive_id, i.n, i.message_id, i.revision, i.carrier_id from ${s}.redrive_item i
    where i.state = 3 and i.carrier_id is not null and i.looked_at is not null order by i.looked_at limit $1::int for no key update skip locked),
  o as materialized (select * from i order by i.message_id)
  select ${list} from o
    left join lateral (select d.id from ${s}.dead_letter d where d.id = o.message_id and d.resolution = 0 and d.revision = o.revision
      for no key update) d on true
    left join lateral (select m.id from ${s}.message m where m.id = o.carrier_id union all
      select m.id from ${s}.message_kept m where m.id = o.carrier_id limit 1) m on true`;

async function lookAgain(s: string, { run, intervene }: Inside, limit: number, at: At): Promise<number> {
  const item = copied(s);
  const looked = (await run(againSql(s, item.list), [limit])).map(item.of);
  for (const redriveId of new Set(looked.map((one) => one.redriveId))) {
    const mine = looked.filter((one) => one.redriveId === redriveId);
    const healed = mine.filter(({ waits, delivered }) => waits && delivered);
    const redrive = (await readRedrive(s, run, "r.id = $1::uuid", [redriveId])) as Redrive;
    if (redrive.mode === "copy") await intervene("resolve", healed, redrive, at);
    const again = mine.filter(({ waits, kept, delivered }) => waits && kept && !delivered);
    await run(
      `update ${s}.redrive_item i set looked_at = case when i.n = any ($3::int[]) then ${clockSql(at.now)} end
        where i.redrive_id = $1::uuid and i.n = any ($2::int[])`,
      [redriveId, mine.map(({ n }) => n), again.map(({ n }) => n)],
    );
  }
  return looked.length;
}

export const createRedriveLook = (home: Home) => ({
  /** Ends items whose ending is known, with the originals of delivered copies, and judges their groups. Null: the token is stale. */
  look: (id: string, token: string, how: LookHow, at: At = {}) =>
    home.transaction("look at a redrive", (inside) => look(home.s, inside, id, token, how, at)),
  /** Resolves originals whose copies had died and were delivered after all. Needs no token: the second caller finds nothing left to do. */
  lookAgain: (limit: number, at: At = {}, under: Fence | null = null) =>
    home.transaction("look at copies again", (inside) => lookAgain(home.s, inside, limit, at), under),
});
