/**
 * CLAIM by id: takes exactly these messages, due or not, if they are pending, not held and carry no ordering key. The same two
 * writes as any claim: the ready rows go, one lease row comes (I3).
 */
import type { ClaimedMessage } from "../../../message/message.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { ClaimRequest } from "../../store.ts";
import type { Db } from "../db.ts";
import { BODY_COLUMNS, bodyOf, claimedRows, headOf, leaseOf } from "./claimed.ts";

/** $1 ids, $2 owner, $3 lease in ms, $4 only what is due. A held message is due at infinity. */
const namedSql = (s: string) =>
  perClock(
    (clock) => `with
  b as materialized (
    select r.ctid as tid, r.id, r.lane_id, r.attempts, r.base from ${s}.ready r
    where r.id = any ($1::uuid[]) and r.due < 'infinity' and (not $4 or r.due <= ${clock}) order by r.id for update skip locked),
  d as (delete from ${s}.ready where ctid = any (array(select tid from b))),
  n as (${leaseOf(s, clock, "b", "0", "$2", "$3")})
  ${headOf("null")}
  union all
  select b.id, b.lane_id, b.attempts + 1, b.base, ${BODY_COLUMNS}, null::smallint from b ${bodyOf(s, "b.id")}`,
  );

export async function claimNamed(db: Db, ids: readonly string[], request: ClaimRequest): Promise<ClaimedMessage[]> {
  if (ids.length === 0) return [];
  const values = [[...new Set(ids)], request.owner, request.leaseMs, request.due === true];
  const rows = await db.connection.rows("claim by id", namedSql(db.s)(request.now), values);
  const lanes = rows.slice(1).map((row) => Number(row[1]));
  return claimedRows(rows, await db.lanes.byId(lanes));
}
