/** What is done to a redrive as a whole. One runner at a time holds it, by a token that the next claim makes stale. */
import { MakegoodError } from "../../message/errors.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Fence } from "../../platform/job.ts";
import type { Home, Row, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { columns, int, intOrNull, momentOrNull, text, textOrNull } from "../columns.ts";
import { beginObserving, byPerson } from "../confidence/outcomes-sql.ts";
import { badCursor, idCursor, type Page, paged, pageLimit } from "../pages.ts";
import { type NewProvenance, record } from "../provenance.ts";
import { ITEM_STATES, LIST_MS_MAX, REDRIVE, REDRIVE_GROUP, type Redrive, readRedrive, SKIPPED, takeUnder } from "./redrive.ts";
import { canaryOf } from "./request.ts";

/** Of `redrive_item i`. What waits in a group that failed says so. */
export const redriveItem = (s: string) =>
  columns({
    n: int("i.n"),
    messageId: text("i.message_id::text"),
    /** As they were when the list was frozen. */
    generation: int("i.generation"),
    revision: int("i.revision"),
    groupId: intOrNull("i.group_id"),
    state: { sql: "i.state::text", read: (code) => ITEM_STATES[Number(code)] as (typeof ITEM_STATES)[number] },
    reason: textOrNull(`case when i.state = 0 and exists (select from ${s}.redrive_group g where g.redrive_id = i.redrive_id
      and g.no = i.group_no and g.verdict = 'failed') then '${SKIPPED.groupFailed}' else i.reason end`),
    /** The message that carries the effect where it is another one (new_key, copy). */
    carrierId: textOrNull("i.carrier_id::text"),
    sentAt: momentOrNull("i.sent_at"),
    endedAt: momentOrNull("i.ended_at"),
  });
export type RedriveItem = ReturnType<ReturnType<typeof redriveItem>["of"]>;

/** Only from one of `from`; `version` (asked first): only from that one. */
export interface Change {
  readonly from: readonly Redrive["status"][];
  readonly version?: number | undefined;
  readonly status: Redrive["status"];
  readonly reason: string | null;
  /** What was repaired before it goes on. */
  readonly repair?: string | null | undefined;
}

export const redriveNotFound = (id: string): MakegoodError =>
  new MakegoodError("redrive_not_found", `there is no redrive ${id.slice(0, 100)}`, { id });

async function change(s: string, run: Run, id: string, request: Change, lines: readonly NewProvenance[], now: Date | undefined) {
  const clock = clockSql(now);
  const redrive = await readRedrive(s, run, "r.id = $1::uuid for no key update", [id]);
  if (!redrive) throw redriveNotFound(id);
  if (request.version !== undefined && request.version !== redrive.version) return { kind: "version_conflict", redrive } as const;
  if (!request.from.includes(redrive.status)) return { kind: "wrong_state", redrive } as const;
  const { status, reason } = request;
  if (status === "cancelled") await run(cancelSql(s, clock), [id], { patienceMs: LIST_MS_MAX });
  // A person wants what stopped to go on: each group is judged anew, by what it does from here on.
  if (status === "running" && redrive.status === "stopped") {
    await recount(s, run, redrive);
    await judgeAnew(s, run, redrive, "waiting > 0");
  }
  const ended = status === "done" || status === "cancelled";
  const startedAt = status === "running" ? `coalesce(r.started_at, ${clock})` : "r.started_at";
  const [row] = await run(
    `update ${s}.redrive r set status = $2, status_reason = $3, repair = coalesce($4, r.repair), version = r.version + 1,
      started_at = ${startedAt}, ended_at = ${ended ? clock : "null"} where r.id = $1::uuid returning ${REDRIVE.list}`,
    [id, status, reason, request.repair ?? null],
  );
  if (status === "running") await beginObserving(s, run, id, byPerson(lines), clock);
  await record(s, run, lines, { now });
  return { kind: "done", redrive: REDRIVE.of(row as Row) } as const;
}

const cancelSql = (s: string, clock: string) => `with i as (update ${s}.redrive_item
      set state = 4, reason = '${SKIPPED.cancelled}', ended_at = ${clock} where redrive_id = $1::uuid and state = 0 returning 1),
    g as (update ${s}.redrive_group set skipped = skipped + waiting, waiting = 0 where redrive_id = $1::uuid)
  update ${s}.redrive r set waiting = r.waiting - c.n, skipped = r.skipped + c.n from (select count(*) as n from i) c where r.id = $1::uuid`;

/** Another canary for those of its groups that `which` says. */
export async function judgeAnew(s: string, run: Run, { redriveId, plan }: Redrive, which: string, values: unknown[] = []) {
  await run(
    `update ${s}.redrive_group set verdict = null, reason = null, canary = $2::int, base_healed = healed, base_failed = failed
      where redrive_id = $1::uuid and ${which}`,
    [redriveId, canaryOf(plan), ...values],
  );
}

/** After all: pages go from new to old. */
const LAST_UUID = "ffffffff-ffff-ffff-ffff-ffffffffffff";

const claimSql = (s: string, clock: string) => `update ${s}.redrive r
  set token = gen_random_uuid(), owner = $1, worked_at = ${clock}, lease_until = ${clock} + $2::float8 * interval '1 ms'
  where r.id = (select w.id from ${s}.redrive w where (w.status = 'running' or w.sent > 0) and w.status <> 'planned'
      and (w.token is null or w.lease_until <= ${clock}) order by w.worked_at nulls first, w.id limit 1 for no key update skip locked)
  returning ${REDRIVE.list}, r.token::text`;

/** What may be sent of `redrive_group g`: $2 topics whose receivers are down, $3 the canary of each group. A receiver that is down gets a canary's worth to be tried. */
const ALLOWED = `case when g.verdict = 'healed' and g.topic = any ($2::text[]) then greatest(0, least(g.waiting, $3::bigint - g.sent))
    when g.verdict = 'healed' then g.waiting when g.verdict is null then least(g.canary, g.waiting) else 0 end`;

const FREE = { down: [] as readonly string[], canary: 0 };

/** What its groups leave to be done; of `redrive_group g`. */
const ROOM = columns({
  /** So many may be sent: of canaries, and of groups that healed. */
  open: int(`coalesce(sum(${ALLOWED}), 0)`),
  healed: int("count(*) filter (where g.verdict = 'healed')"),
  groups: int("count(*)"),
  /** Of groups with messages left: whose canary is under way, whose receiver went down, that failed. */
  undecided: int("count(*) filter (where g.verdict is null and g.waiting > 0)"),
  inconclusive: int("count(*) filter (where g.verdict = 'inconclusive' and g.waiting > 0)"),
  failed: int("count(*) filter (where g.verdict = 'failed' and g.waiting > 0)"),
  /** Messages under way in groups that did not fail. */
  underWay: int("coalesce(sum(g.sent) filter (where g.verdict is distinct from 'failed'), 0)"),
  /** Why the first of those that failed did. */
  reason: textOrNull("min(g.reason) filter (where g.verdict = 'failed' and g.waiting > 0)"),
});
export type Room = ReturnType<typeof ROOM.of>;

/** Canaries first, then group by group, each in the order of the list; no further than the limit. $4 limit. */
const nextSql = (s: string) => `select i.n::text, i.message_id::text
    from (select g.no, ${ALLOWED} as allowed from ${s}.redrive_group g
      where g.redrive_id = $1::uuid and g.waiting > 0 and ${ALLOWED} > 0 order by g.verdict nulls first, g.no limit $4::int) g
    cross join lateral (select i.* from ${s}.redrive_item i where i.redrive_id = $1::uuid and i.group_no = g.no and i.state = 0
      order by i.n limit least(g.allowed, $4::int)) i limit $4::int`;

/** Groups and their counts as the items have them, where those do not fit the redrive's. What was sent meanwhile was of the canary; $2: what that is. */
const recountSql = (s: string) => {
  const each = (sql: (state: RedriveItem["state"], code: number) => string) => ITEM_STATES.map(sql).join(", ");
  return `insert into ${s}.redrive_group as g (redrive_id, no, topic, canary, ${each((state) => state)})
  select $1::uuid, c.no, '', greatest(0, $2::bigint - (c.sent + c.healed + c.failed)), ${each((state) => `c.${state}`)}
  from (select i.group_no as no, ${each((state, code) => `count(*) filter (where i.state = ${code}) as ${state}`)}
    from ${s}.redrive_item i where i.redrive_id = $1::uuid group by i.group_no) c
  where (select (sum(o.waiting), sum(o.sent), sum(o.healed), sum(o.failed)) from ${s}.redrive_group o where o.redrive_id = $1::uuid)
    is distinct from (select (r.waiting::numeric, r.sent::numeric, r.healed::numeric, r.failed::numeric) from ${s}.redrive r where r.id = $1::uuid)
  on conflict (redrive_id, no) do update set ${each((state) => `${state} = excluded.${state}`)},
    canary = greatest(0, g.canary - greatest(0, excluded.sent + excluded.healed + excluded.failed - (g.sent + g.healed + g.failed)))`;
};

/** A process of the version before keeps no groups. */
async function recount(s: string, run: Run, { redriveId, plan }: Redrive): Promise<void> {
  await run(recountSql(s), [redriveId, canaryOf(plan)], { patienceMs: LIST_MS_MAX });
}

const GROUPS_SHOWN = 50;

export function createRedriveRun(home: Home) {
  const { s } = home;
  const run = home.read("read redrives");
  const item = redriveItem(s);
  return {
    get: async (id: string) => (isUuid(id) ? readRedrive(s, run, "r.id = $1::uuid", [id]) : null),
    find: (idempotencyKey: string) => readRedrive(s, run, "r.request_key = $1", [idempotencyKey]),
    /** Newest first. */
    async list({ status, limit, cursor }: Page & { readonly status?: Redrive["status"] | undefined }) {
      if (cursor !== undefined && !isUuid(cursor)) throw badCursor();
      const values = [cursor ?? LAST_UUID, ...(status === undefined ? [] : [status])];
      const text = `select ${REDRIVE.list} from ${s}.redrive r where r.id < $1::uuid ${status === undefined ? "" : "and r.status = $2"}
        order by r.id desc limit ${pageLimit(limit) + 1}`;
      const rows = (await run(text, values)).map(REDRIVE.of);
      return paged(rows, limit, (last) => last.redriveId);
    },
    async items(id: string, { state, limit, cursor }: Page & { readonly state?: RedriveItem["state"] | undefined }) {
      const after = cursor === undefined ? "0" : idCursor(cursor);
      const fits = state === undefined ? "" : `and i.state = ${ITEM_STATES.indexOf(state)}`;
      const text = `select ${item.list} from ${s}.redrive_item i where i.redrive_id = $1::uuid and i.n > $2::bigint ${fits}
        order by i.n limit ${pageLimit(limit) + 1}`;
      const rows = (await run(text, [id, after])).map(item.of);
      return paged(rows, limit, (last) => String(last.n));
    },
    /** Raises the version, and skips what waits if it is cancelled. A runner's lease is not touched. */
    change: (id: string, request: Change, provenance: readonly NewProvenance[], at?: At, under: Fence | null = null) =>
      home.transaction("change a redrive", (inside) => change(s, inside.run, id, request, provenance, at?.now), under),
    /** One with work (running, or with items sent whose ending is open) and no live lease, worked on longest ago. */
    async claim(owner: string, leaseMs: number, at?: At) {
      const [row] = await home.write("claim a redrive")(claimSql(s, clockSql(at?.now)), [owner, leaseMs]);
      return row ? { redrive: REDRIVE.of(row), token: row.at(-1) as string } : null;
    },
    /** False: the token is stale. `state` is kept for the process that claims next; a token whose lease ran out holds until another claims. */
    async keep(
      id: string,
      token: string,
      { leaseMs, state, release }: { leaseMs?: number; state?: string; release?: boolean },
      at?: At,
    ) {
      const clock = clockSql(at?.now);
      const text = `update ${s}.redrive set worked_at = ${clock}, state = coalesce($3, state),
          lease_until = case when $4::float8 is null then lease_until else ${clock} + $4::float8 * interval '1 ms' end,
          token = ${release ? "null" : "token"} where id = $1::uuid and token::text = $2 returning 1`;
      const values = [id, token, state ?? null, leaseMs ?? null];
      return (await home.write("keep a redrive")(text, values)).length > 0;
    },
    async room(id: string, { down, canary }: typeof FREE): Promise<Room> {
      const text = `select ${ROOM.list} from ${s}.redrive_group g where g.redrive_id = $1::uuid`;
      const [row] = await run(text, [id, down, canary], { name: "mg_redrive_room" });
      return ROOM.of(row as Row);
    },
    /** The next waiting items that may be sent, with their messages where asked for. */
    async next(id: string, limit: number, bodies: boolean, { down, canary } = FREE) {
      const rows = await run(nextSql(s), [id, down, canary, Math.max(0, limit)]);
      const items = rows.map(([n, messageId]) => ({ n: Number(n), messageId: messageId as string }));
      const ids = items.map(({ messageId }) => messageId);
      const byId = new Map((bodies ? await home.messages(run, ids) : []).map((view) => [view.id, view]));
      return items.map((one) => ({ item: one, message: byId.get(one.messageId) ?? null }));
    },
    /** It as it is now, its groups counted again where a process of the version before sent some of them or started it; null: the token is stale. */
    recount: (id: string, token: string) =>
      home.transaction("count a redrive again", async (inside) => {
        const redrive = await takeUnder(s, inside.run, id, token);
        if (redrive) await recount(s, inside.run, redrive);
        return redrive;
      }),
    /** How it stands: its groups, those that failed first, and what was left alone. */
    async standing({ redriveId: id, counts: { skipped } }: Redrive) {
      const shown = `select ${REDRIVE_GROUP.list} from ${s}.redrive_group g where g.redrive_id = $1::uuid
        order by g.verdict = 'failed' desc nulls last, g.verdict = 'inconclusive' desc nulls last, g.waiting + g.sent desc, g.no limit ${GROUPS_SHOWN}`;
      const summed = `select coalesce(verdict, 'undecided'), count(*)::text from ${s}.redrive_group where redrive_id = $1::uuid group by 1`;
      const left = `select reason, count(*)::text from ${s}.redrive_item where redrive_id = $1::uuid and state = 4 group by reason order by reason`;
      const open = `select distinct topic from ${s}.redrive_group where redrive_id = $1::uuid and waiting + sent > 0`;
      const numbers = (rows: Row[]): Record<string, number> =>
        Object.fromEntries(rows.map(([name, n]) => [name ?? "", Number(n)]));
      return {
        groups: (await run(shown, [id])).map(REDRIVE_GROUP.of),
        /** How many groups have which verdict. */
        verdicts: { healed: 0, failed: 0, inconclusive: 0, undecided: 0, ...numbers(await run(summed, [id])) },
        /** How many were left alone, by reason. */
        leftOut: skipped === 0 ? {} : numbers(await run(left, [id])),
        openTopics: (await run(open, [id])).map(([topic]) => topic as string),
      };
    },
  };
}
