/**
 * LEAD: a named leadership as a lease row with a term. It saves work and never provides safety (I9): what a leader does must be
 * safe when two do it.
 */

import { perClock } from "../../shared/clock-sql.ts";
import type { At, Leadership } from "../../store.ts";
import type { Db } from "../db.ts";

const takeSql = (s: string) =>
  perClock(
    (
      clock,
    ) => `insert into ${s}.leader as l (name, owner, until) values ($1::text, $2::text, ${clock} + $3::bigint * interval '1 ms')
    on conflict (name) do update set owner = excluded.owner, until = excluded.until,
      term = l.term + (l.owner <> excluded.owner or l.until < ${clock})::int
    where l.owner = excluded.owner or l.until < ${clock}
    returning owner, term::text`,
  );

const leaveSql = (s: string) =>
  perClock(
    (clock) =>
      `update ${s}.leader set until = ${clock} - interval '1 ms' where name = $1::text and owner = $2::text returning owner, term::text`,
  );

export function createLead(db: Db): (name: string, owner: string, ttlMs: number, at?: At) => Promise<Leadership> {
  const take = takeSql(db.s);
  const leave = leaveSql(db.s);
  return async function lead(name, owner, ttlMs, at) {
    const rows =
      ttlMs > 0
        ? await db.connection.rows("lead", take(at?.now), [name, owner, ttlMs])
        : await db.connection.rows("lead", leave(at?.now), [name, owner]);
    if (rows[0] && ttlMs > 0) return { held: true, owner, term: rows[0][1] as string };
    const [row] = await db.connection.rows("lead", `select owner, term::text from ${db.s}.leader where name = $1`, [name], {
      reads: true,
    });
    return { held: false, owner: row?.[0] ?? "", term: row?.[1] ?? "0" };
  };
}
