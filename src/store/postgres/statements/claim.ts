/**
 * CLAIM: takes due messages of the named lanes. Their ready rows are deleted and one lease row for the whole batch is written
 * in the same statement (I3: a message is in `ready` or under one lease, never both). Rows that others hold are skipped, and
 * the batch ends where its payloads would pass `bytesMax`.
 */
import { LIMITS } from "../../../message/limits.ts";
import type { ClaimedMessage } from "../../../message/message.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { ClaimRequest, From } from "../../store.ts";
import type { Db } from "../db.ts";
import { KIND_ORDERED } from "../lane-table.ts";
import type { Watermarks } from "../watermark.ts";
import { claimNamed } from "./claim-named.ts";
import { claimOrdered } from "./claim-ordered.ts";
import { BEGINNINGS, type Beginning, BODY_COLUMNS, beginningOf, bodyOf, claimedRows, headOf, leaseOf } from "./claimed.ts";
import { spotOf } from "./spot.ts";

/** Where the batch ends so that its payloads stay below the limit; the first one comes in any case. */
const cut = `select tid, id, lane_id, due, attempts, base
    from (select c.*, row_number() over w as o, sum(bytes) over w as total from c window w as (rows unbounded preceding)) x
    where (o = 1 or total <= $7::bigint)`;

/** Few are expected: what costs a batch of hundreds nothing is most of the time of a single message that a caller waits for. */
const FEW = 16;
const FEW_LANES = 4;

/** Which rows of a lane `l` are looked at, and in which order: beyond its watermark, from its end, or from a spot that `l.part` of them are before. */
const FROM = {
  oldest: () => ({ join: "", where: "(r.due, r.id) > (l.low_due, l.low_id)", way: "" }),
  newest: () => ({ ...FROM.oldest(), way: " desc" }),
  inside(s: string, clock: string) {
    const rows = { table: `${s}.ready`, where: `r.lane_id = l.lane and ${FROM.oldest().where}`, columns: ["due", "id"], clock };
    return { join: `cross join lateral (${spotOf(rows, "l.part", "l.n")}) a`, where: "(r.due, r.id) >= (a.due, a.id)", way: "" };
  },
};

/** Parameters: lanes, how many of each, their watermarks (due, id), owner, lease ms, bytes; for `inside` at which part of each. */
export const claimSql = (s: string, few: boolean, from: Beginning = "oldest") =>
  perClock((clock) => {
    const { join, where, way } = FROM[from](s, clock);
    const [part, parts] = from === "inside" ? [", part", ", $8::float8[]"] : ["", ""];
    return `with
  c as materialized (
    select r.tid, r.id, r.lane_id, r.due, r.attempts, r.base, coalesce(r.bytes, ${LIMITS.payloadBytesMax}) as bytes
    from unnest($1::int[], $2::int[], $3::timestamptz[], $4::uuid[]${parts}) l(lane, n, low_due, low_id${part}) ${join}
    cross join lateral (
      select r.ctid as tid, r.* from ${s}.ready r
      where r.lane_id = l.lane and r.due <= ${clock} and ${where}
      order by r.due${way}, r.id${way} limit l.n for update skip locked) r),
  ${
    few
      ? `b as materialized (${cut})`
      : `t as materialized (select sum(bytes) <= $7::bigint as fits from c),
  -- only one of the two halves runs; the usual one has nothing to count
  b as materialized (select tid, id, lane_id, due, attempts, base from c where (select fits from t) union all ${cut} and (select not fits from t))`
  },
  d as (delete from ${s}.ready where ctid = any (array(select tid from b))),
  n as (${leaseOf(s, clock, "b", "0", "$5", "$6")})
  ${headOf(few ? "null" : "(select string_agg(lane_id || ':' || extract(epoch from due), ',') from (select lane_id, max(due) as due from b group by lane_id) y)")}
  union all
  select b.id, b.lane_id, b.attempts + 1, b.base, ${BODY_COLUMNS}, null::smallint from b ${bodyOf(s, "b.id")}`;
  });

interface Wanted {
  readonly id: number;
  readonly limit: number;
  readonly from: From;
}

const bytesOf = (claimed: readonly ClaimedMessage[]): number => claimed.reduce((sum, m) => sum + Buffer.byteLength(m.payload), 0);

export function createClaim(db: Db, watermarks: Watermarks): (request: ClaimRequest) => Promise<ClaimedMessage[]> {
  const many = claimSql(db.s, false);
  const few = claimSql(db.s, true);
  const newest = claimSql(db.s, true, "newest");
  const inside = claimSql(db.s, true, "inside");

  function valuesOf(lanes: readonly Wanted[], request: ClaimRequest, bytesMax: number): unknown[] {
    const marks = lanes.map(({ id }) => watermarks.of(id, request.now));
    const { owner, leaseMs } = request;
    const named = [lanes.map((l) => l.id), lanes.map((l) => l.limit), marks.map((m) => m.due), marks.map((m) => m.id)];
    return [...named, owner, leaseMs, bytesMax];
  }

  async function claimPlain(lanes: readonly Wanted[], request: ClaimRequest, bytesMax: number): Promise<ClaimedMessage[]> {
    const from = beginningOf(lanes[0] as Wanted);
    const values = valuesOf(lanes, request, bytesMax);
    if (from !== "oldest") {
      // Few and rare: no watermark of a lane is learned from them.
      const [sql, more] = from === "newest" ? [newest, []] : [inside, [lanes.map((lane) => lane.from)]];
      const rows = await db.connection.rows("claim", sql(request.now), [...values, ...more]);
      return claimedRows(rows, await db.lanes.byId(lanes.map((l) => l.id)));
    }
    const isFew = lanes.length <= FEW_LANES && lanes.every(({ id, limit }) => limit <= FEW || watermarks.ranDry(id));
    const name = request.now === undefined ? (isFew ? "mg_claim_few" : "mg_claim") : undefined;
    const rows = await db.connection.rows("claim", (isFew ? few : many)(request.now), values, { name });
    if (request.now === undefined) watermarks.advance(lanes, rows);
    return claimedRows(rows, await db.lanes.byId(lanes.map((l) => l.id)));
  }

  return async function claim(request) {
    if (request.ids) return claimNamed(db, request.ids, request);
    const wanted = request.lanes
      .map(({ lane, limit, from = "oldest" }): Wanted => ({ id: Number(lane), limit, from }))
      .filter(({ limit }) => limit > 0);
    if (wanted.length === 0) return [];
    const known = await db.lanes.byId(wanted.map((l) => l.id));
    const bytesMax = request.bytesMax ?? Number.MAX_SAFE_INTEGER;
    const isOrdered = ({ id }: Wanted) => known.get(id)?.kind === KIND_ORDERED;
    const claimed: ClaimedMessage[] = [];
    let used = 0;
    for (const ordered of [false, true]) {
      for (const from of BEGINNINGS) {
        const lanes = wanted.filter((lane) => isOrdered(lane) === ordered && beginningOf(lane) === from);
        if (lanes.length === 0 || (used > 0 && used >= bytesMax)) continue;
        const left = { bytesMax: bytesMax - used, atLeastOne: used === 0 };
        claimed.push(...(await (ordered ? claimOrdered(db, lanes, request, left) : claimPlain(lanes, request, left.bytesMax))));
        used = bytesOf(claimed);
      }
    }
    return claimed;
  };
}
