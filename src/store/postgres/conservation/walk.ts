/**
 * The comparison of ids: what was accepted and not yet seen settled against the rows that say where a message is, both ways, a range of ids
 * at a time. Each range is read in one snapshot, in which a message has exactly one state; so nothing that is on its way is taken for lost.
 */
import type { Found } from "../../conservation.ts";
import type { Row } from "../connection.ts";
import { replaceFound } from "./divergences.ts";
import { type Ask, LAST_ID, type Mark, NO_ID, refuseHalfWay } from "./ledger.ts";
import { countIn } from "./register.ts";
import { bodyOf, hourOf, judged, NEXT_XID, xidOf } from "./sums.ts";

/** Where a range of so many ends: $1 the id to begin after. */
const endSql = (s: string, size: number): string => {
  const nth = (table: string): string =>
    `(select id from ${s}.${table} where id > $1::uuid order by id offset ${size - 1} limit 1)`;
  return `select coalesce(least(${["conservation_open", "ready", "ready_ordered", "dead_letter"].map(nth).join(", ")}), '${LAST_ID}')::text`;
};

const RANGE = (column: string): string => `${column} > $1::uuid and ${column} <= $2::uuid`;
const LISTED = (column: string): string => `${column} = any ($1::uuid[])`;

/**
 * Of a range ($1 after, $2 to) or of listed ids ($1). state: 1 waits, 2 is claimed, 3 dead, 4 resolved, 5 discarded, 6 delivered. Only what is not simply where it was: columns id,
 * what (see `Row` below), bucket, ended, topic, tenant, hour.
 */
const closeSql = (s: string, among: typeof RANGE): string => {
  const range = (column = "id"): string => among(column);
  return `with ${NEXT_XID},
  l as materialized (select u.id, l.id as lease_id, u.lane_id from ${s}.lease l cross join lateral unnest(l.ids, l.lanes) u(id, lane_id) where ${range("u.id")}),
  p as materialized (
    select id, 1 as state, lane_id from ${s}.ready where ${range()}
    union all select id, 1, lane_id from ${s}.ready_ordered where ${range()}
    union all select l.id, 2, l.lane_id from l where not exists (select from ${s}.attempt a where a.message_id = l.id and a.lease_id = l.lease_id)
    union all select id, 3 + resolution, lane_id from ${s}.dead_letter where ${range()} and resolution < 3),
  g as materialized (select id, count(*) as n, min(state) as state, min(lane_id) as lane_id from p group by id),
  o as materialized (select * from ${s}.conservation_open where ${range()}),
  u as materialized (select id, o.bucket, o.body, o.money, coalesce(g.n, 0) as n, g.state, g.lane_id from o full join g using (id)),
  f as materialized (
    select u.*, coalesce(m.payload, k.payload) as payload, coalesce(m.id, k.id) is not null as present, coalesce(m.created_at, k.created_at) as created_at,
      m.id is null or ${xidOf("m")} < (select c.from_xid from ${s}.conservation c) as counted,
      (select a.message_id from ${s}.attempt a where a.message_id = u.id and a.outcome in (1, 2) limit 1) is not null as delivered
    from x cross join u left join ${s}.message m on m.id = u.id left join ${s}.message_kept k on k.id = u.id),
  j as (
    select f.*, b.topic, b.tenant, b.hour, n + delivered::int as states,
      case when delivered then 1 when state = 4 then 2 when state = 5 then 3 else 0 end as ended,
      case when not present then case when n + delivered::int = 0 then 'message_gone' else 'state_without_message' end
        when n + delivered::int > 1 then 'state_doubled'
        when n + delivered::int = 0 then 'no_state'
        when bucket is null then case when state <= 3 and counted then 'uncounted' end
        when money is distinct from case when b.money_field is not null then ${s}.money_of(payload, b.money_field) end then 'money_changed'
        when body <> ${bodyOf("f.id", "payload")} then 'payload_changed'
        when delivered or state in (4, 5) then 'settled' end as what
    from f left join ${s}.conservation_bucket b on b.id = f.bucket)
  select j.id::text, j.what, j.bucket::text, j.ended::text, coalesce(j.topic, t.name), coalesce(j.tenant, ln.tenant), coalesce(j.hour, ${hourOf("j.created_at")})::text
  from j left join ${s}.lane ln on ln.id = j.lane_id left join ${s}.topic t on t.id = ln.topic_id where j.what is not null order by j.id`;
};

interface Seen {
  readonly id: string;
  readonly what: string;
  readonly ended: number;
  readonly topic: string | null;
  readonly tenant: string | null;
  readonly hour: string | null;
}

/** $1 ids, $2 how each ended. Of two passes that saw the same end, one finds the row. */
export const settleSql = (s: string): string => `with d as (delete from ${s}.conservation_open o
    using unnest($1::uuid[], $2::int[]) x(id, ended) where o.id = x.id returning o.bucket, o.hash, x.ended)
  update ${s}.conservation_bucket b set delivered_n = b.delivered_n + g.delivered, resolved_n = b.resolved_n + g.resolved,
    discarded_n = b.discarded_n + g.discarded, settled_hash = b.settled_hash + g.hash
  from (select bucket, sum(hash) as hash, count(*) filter (where ended = 1) as delivered, count(*) filter (where ended = 2) as resolved,
    count(*) filter (where ended = 3) as discarded from d group by bucket) g where b.id = g.bucket`;

/**
 * Live, counted once, and not among those that are open: a person has opened again what was ended, which leaves a line of provenance; then it
 * is open again. Without that line it was written by a statement that began long before it wrote, and is counted now.
 */
async function takeBack(ask: Ask, s: string, ids: readonly string[]): Promise<void> {
  const rows = (which: string): string => `(select * from (select m.* from ${s}.message m where m.id = any (${which}) union all
    select k.* from ${s}.message_kept k where k.id = any (${which}) and not exists (select from ${s}.message m where m.id = k.id)) m)`;
  const literal = (some: readonly string[]): string => `'{${some.join(",")}}'::uuid[]`;
  const reopened = await ask(`select distinct on (v.message_id) v.message_id::text, e.action from ${s}.provenance v
    cross join lateral (select e.action from ${s}.provenance e where e.message_id = v.message_id and e.id < v.id and e.action in ('resolve', 'discard', 'cancel')
      order by e.id desc limit 1) e
    where v.message_id = any (${literal(ids)}) and v.action = 'reopen' order by v.message_id, v.id desc`);
  const again = reopened.map(([id]) => id as string);
  const late = ids.filter((id) => !again.includes(id));
  if (late.length > 0) await countIn(ask, s, rows(literal(late)), false);
  if (again.length === 0) return;
  const [resolved, discarded] = [["resolve"], ["discard", "cancel"]].map((actions) =>
    reopened.filter(([, action]) => actions.includes(action as string)).map(([id]) => id as string),
  ) as [string[], string[]];
  await ask(`with r as materialized (${judged(s, rows(literal(again)))}),
    o as (insert into ${s}.conservation_open (id, bucket, hash, body, money) select id, bucket, hash, body, money from r
      on conflict do nothing returning id, bucket, hash)
    update ${s}.conservation_bucket b set resolved_n = b.resolved_n - g.resolved, discarded_n = b.discarded_n - g.discarded,
      settled_hash = b.settled_hash - g.hash, sealed = null
    from (select bucket, sum(hash) as hash, count(*) filter (where id = any (${literal(resolved)})) as resolved,
      count(*) filter (where id = any (${literal(discarded)})) as discarded from o group by bucket) g where b.id = g.bucket`);
}

/** Many of one kind and bucket are one finding. */
function gathered(seen: readonly Seen[]): Found[] {
  const groups = new Map<string, Seen[]>();
  for (const one of seen) {
    const key = JSON.stringify([one.what, one.topic, one.tenant, one.hour]);
    const group = groups.get(key);
    if (group) group.push(one);
    else groups.set(key, [one]);
  }
  return [...groups.values()].map((group) => {
    const { what, topic, tenant, hour, id } = group[0] as Seen;
    const of = { topic, tenantId: tenant, hour: hour === null ? null : new Date(hour), place: id };
    return { kind: what, ...of, count: group.length, ids: group.map((one) => one.id), detail: null };
  });
}

/** Two rounds over all ids: `walk` compares which are where, and looks closer only where that differs; `deep` also reads what they carry. */
export type Round = "walk" | "deep";

const cursorOf = (mark: Mark, round: Round): string => (round === "walk" ? mark.walkAt : mark.deepAt);

/** The next range begins where this one ended, in whichever process. A round counts from when it began. */
async function advance(ask: Ask, s: string, round: Round, after: string, to: string): Promise<boolean> {
  const began = after === NO_ID ? `, ${round}_began = clock_timestamp()` : "";
  const rolled = round === "walk" ? "rolled_at" : "deep_rolled_at";
  const last = to === LAST_ID;
  const ended = last
    ? `, ${rolled} = ${after === NO_ID ? "clock_timestamp()" : `coalesce(${round}_began, clock_timestamp())`}`
    : "";
  await ask(`update ${s}.conservation set ${round}_at = $1::uuid${began}${ended}`, [last ? NO_ID : to]);
  return last;
}

/** Ids of a range that wait, are claimed or are dead, as a relation; one that is in two states is in it twice. */
const liveSql = (
  s: string,
): string => `(select id from ${s}.ready where ${RANGE("id")} union all select id from ${s}.ready_ordered where ${RANGE("id")}
    union all select id from ${s}.dead_letter where ${RANGE("id")} and resolution = 0
    union all select u.id from ${s}.lease l cross join lateral unnest(l.ids) u(id) where ${RANGE("u.id")}
      and not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id))`;

/**
 * Whether the open ids of a range are those that live, by a sum of the server's own hashes: both sides are made in one statement, so it need
 * not be the same tomorrow. $1 after, $2 to.
 */
const sumsSql = (s: string): string => {
  const sum = "count(*)::text || ' ' || coalesce(sum(uuid_hash_extended(id, 0)), 0)::text";
  return `select (select ${sum} from ${s}.conservation_open where ${RANGE("id")}), (select ${sum} from ${liveSql(s)} p)`;
};

const LOOKED_AT_MAX = 2_000;

/** The ids of a range that are open and do not live, live and are not open, or live twice: twice as dear as the sums. $1 after, $2 to. */
const differingSql = (s: string): string => `select coalesce(o.id, g.id)::text
  from (select id from ${s}.conservation_open where ${RANGE("id")}) o full join (select id, count(*) as n from ${liveSql(s)} p group by id) g on g.id = o.id
  where o.id is null or g.id is null or g.n > 1 order by 1 limit ${LOOKED_AT_MAX}`;

/**
 * A range of so many ids: those that differ are looked at one by one. `differs`: what the last range did, so that the next is not summed up in
 * vain. `known`: something was found here before, and the whole range must be looked at closely so that it goes when it is mended.
 */
export async function skimSome(
  ask: Ask,
  s: string,
  mark: Mark,
  size: number,
  differed: boolean,
): Promise<"last" | "same" | "differs" | "known"> {
  const [end] = await ask(endSql(s, size), [mark.walkAt]);
  const part = { after: mark.walkAt, to: end?.[0] as string };
  const [known] = await ask(
    `select 1 from ${s}.conservation_divergence where scope = 'ids' and place > $1 and place <= $2 limit 1`,
    [part.after, part.to],
  );
  if (known) return "known";
  const [sums] = differed ? [] : await ask(sumsSql(s), [part.after, part.to]);
  const same = sums !== undefined && sums[0] === sums[1];
  const ids = same ? [] : (await ask(differingSql(s), [part.after, part.to])).map(([id]) => id as string);
  if (ids.length === LOOKED_AT_MAX) part.to = ids.at(-1) as string;
  if (ids.length > 0) await judge(ask, s, mark, await closely(ask, closeSql(s, LISTED), [ids]), part);
  if (await advance(ask, s, "walk", part.after, part.to)) return "last";
  return ids.length === 0 ? "same" : "differs";
}

/** One range, each id by itself; true when it was the last. */
export async function walkSome(ask: Ask, s: string, mark: Mark, size: number, round: Round): Promise<boolean> {
  const after = cursorOf(mark, round);
  const [end] = await ask(endSql(s, size), [after]);
  const part = { after, to: end?.[0] as string };
  await judge(ask, s, mark, await closely(ask, closeSql(s, RANGE), [part.after, part.to]), part);
  return advance(ask, s, round, part.after, part.to);
}

/** Its relations are made in it, and the planner can only guess at them: it needs all its ways to join them. */
async function closely(ask: Ask, text: string, values: unknown[]): Promise<Row[]> {
  await ask("set local enable_seqscan = on");
  return ask(text, values);
}

/** Settles what has ended, counts what was not, and keeps what is wrong, of a part of which these are the rows that say anything. */
async function judge(ask: Ask, s: string, mark: Mark, rows: readonly Row[], part: { after: string; to: string }): Promise<void> {
  await refuseHalfWay(ask, s);
  const seen = rows.map(
    ([id, what, , ended, topic = null, tenant = null, hour = null]): Seen =>
      ({ id, what, ended: Number(ended), topic, tenant, hour }) as Seen,
  );
  const settled = seen.filter(({ what }) => what === "settled");
  if (settled.length > 0) await ask(settleSql(s), [settled.map(({ id }) => id), settled.map(({ ended }) => ended)]);
  const uncounted = seen.filter(({ what }) => what === "uncounted").map(({ id }) => id);
  if (uncounted.length > 0 && mark.phase === 2) await takeBack(ask, s, uncounted);
  const wrong = seen.filter(({ what }) => what !== "settled" && what !== "uncounted");
  await replaceFound(ask, s, "ids", gathered(wrong), part);
}
