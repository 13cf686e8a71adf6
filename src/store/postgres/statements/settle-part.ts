/**
 * SETTLE, the usual part of a lease: some of its messages, all delivered, without ordering keys. A receiver with many requests at once
 * answers them in any order, so leases are settled in parts as a rule, and the statement for any mixture costs several times as much.
 */
import type { Settle } from "../../../message/settlement.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { Db } from "../db.ts";
import type { OpenLeases } from "../open-leases.ts";

/** $1 leases, $2 tokens, $3 whether the lease ends with this call; per message: $4 id, $5 which of these, from 1, $6 attempt, $7 duration. */
const partSql = (s: string) =>
  perClock(
    (clock) => `with
    l as materialized (
      select l.id, y.ends, y.g from ${s}.lease l join unnest($1::bigint[], $2::uuid[], $3::boolean[]) with ordinality y(id, token, ends, g)
        on y.id = l.id and y.token = l.token order by l.id for no key update of l),
    a as (insert into ${s}.attempt (message_id, lease_id, n, outcome, at, duration_ms)
      select x.id, l.id, x.n, 1, ${clock}, x.ms from l join unnest($4::uuid[], $5::int[], $6::smallint[], $7::int[]) x(id, g, n, ms) on x.g = l.g
      on conflict do nothing returning message_id, lease_id),
    e as (delete from ${s}.lease using l where lease.id = l.id and l.ends)
    select a.message_id::text, l.g::text from a join l on l.id = a.lease_id`,
  );

/** Takes groups of known messages, each of one claim; returns what was written, as id and group, from 1. */
export function createSettlePart(
  db: Db,
  open: OpenLeases,
): (groups: readonly Settle[][], now: Date | undefined) => Promise<Set<string>> {
  const part = partSql(db.s);

  return async function settlePart(groups, now) {
    const claims = groups.map((group) => (group[0] as Settle).claim);
    const all = groups.flatMap((group, g) => group.map((one) => ({ one, g: g + 1 })));
    const values = [
      claims.map((c) => c.lease),
      claims.map((c) => c.token),
      groups.map((group) => open.endsWith(group)),
      all.map(({ one }) => one.id),
      all.map(({ g }) => g),
      all.map(({ one }) => one.attempt),
      all.map(({ one }) => Math.round(one.durationMs ?? 0)),
    ];
    const rows = await db.connection.rows("settle", part(now), values, {
      name: now === undefined ? "mg_settle_part" : undefined,
    });
    return new Set(rows.map((row) => `${row[0]} ${row[1]}`));
  };
}
