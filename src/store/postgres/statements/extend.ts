/**
 * EXTEND: pushes lease ends out, one row per lease. A stale token changes nothing (I4).
 */
import type { Claim } from "../../../message/message.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { At } from "../../store.ts";
import type { Db } from "../db.ts";
import { UNHURRIED } from "./claimed.ts";

const extendSql = (s: string) =>
  perClock(
    (clock) => `with x as (
      select l.id from ${s}.lease l join unnest($1::bigint[], $2::uuid[]) x(id, token) on l.id = x.id and l.token = x.token
      order by l.id for no key update of l)
    update ${s}.lease l set until = ${clock} + $3::int * interval '1 ms' from x where l.id = x.id and ${UNHURRIED} returning l.id::text`,
  );

export function createExtend(db: Db): (claims: readonly Claim[], leaseMs: number, at?: At) => Promise<("extended" | "lost")[]> {
  const sql = extendSql(db.s);
  return async function extend(claims, leaseMs, at) {
    const distinct = new Map(claims.map((claim) => [`${claim.lease} ${claim.token}`, claim]));
    if (distinct.size === 0) return [];
    const each = [...distinct.values()];
    const rows = await db.connection.rows("extend", sql(at?.now), [each.map((c) => c.lease), each.map((c) => c.token), leaseMs]);
    const extended = new Set(rows.map((row) => row[0]));
    // Two tokens of one lease cannot both be live, so the lease's number is enough only together with the token that matched.
    const live = new Set(each.filter((c) => extended.has(c.lease)).map((c) => `${c.lease} ${c.token}`));
    const doubled = new Set(each.map((c) => c.lease)).size < each.length;
    if (!doubled) return claims.map((c) => (live.has(`${c.lease} ${c.token}`) ? "extended" : "lost"));
    const answers: ("extended" | "lost")[] = [];
    for (const claim of claims) answers.push(...(await extend([claim], leaseMs, at)));
    return answers;
  };
}
