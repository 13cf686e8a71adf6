/**
 * LEAD: a named leadership as a lease row with a term that only grows. It saves work and never provides safety (I9): what a leader does must
 * be safe when two do it. What a leader writes carries its fence: the database refuses it at commit once the leadership has ended.
 */

import type { Fence } from "../../../platform/job.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { At, Leadership } from "../../store.ts";
import type { Queryable } from "../connection.ts";
import type { Db } from "../db.ts";

/** How long a leader that says nothing may hold what it has locked. */
const SILENT = "60s";

/** In a transaction, before it writes; the check is the server's, when the transaction commits. */
export async function fenceIn(client: Queryable, s: string, fence: Fence | null | undefined): Promise<void> {
  if (!fence) return;
  await client.query(`set local idle_in_transaction_session_timeout = '${SILENT}'`);
  const text = `insert into ${s}.led_write (name, owner, term) values ($1, $2, $3::bigint)`;
  await client.query(text, [fence.name, fence.owner, fence.term]);
}

const takeSql = (s: string) =>
  perClock(
    (
      clock,
    ) => `insert into ${s}.leader as l (name, owner, until) values ($1::text, $2::text, ${clock} + $3::bigint * interval '1 ms')
    on conflict (name) do update set owner = excluded.owner, until = excluded.until,
      term = case when l.owner <> excluded.owner or l.until < ${clock} then greatest(l.term + 1, excluded.term) else l.term end
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
