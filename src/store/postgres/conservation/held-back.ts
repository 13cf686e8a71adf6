/**
 * What keeps counting from going on: a transaction that stays open. What was written after it began is not counted before it ends, so after
 * ten minutes nothing is proven about them. Passes remember which transactions had begun by then, which also tells when this role may
 * not see whose it is.
 */

import { clockSql } from "../../shared/clock-sql.ts";
import type { At } from "../../store.ts";
import { OPEN_TRANSACTIONS } from "../open-transactions.ts";
import type { Ask } from "./ledger.ts";

const HELD_MS_MAX = 10 * 60_000;
/** Below this it is a transaction like any other. */
const NAMED_MS_MIN = 1_000;

export interface HeldBack {
  readonly words: string;
  /** For longer than can be called proven. */
  readonly unproven: boolean;
}

/** For how long what holds it was known to be open, by the passes and by the server, and what it is. */
const heldSql = (s: string, now: Date | undefined): string => `with
  x as materialized (select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as n),
  p as materialized (select coalesce((select q.no from x, ${s}.conservation_pass q where q.next_xid <= x.n order by q.no desc limit 1), 0) as no),
  h as materialized (select o.what, o.since from x join ${OPEN_TRANSACTIONS} o on o.xid::text::bigint = x.n & 4294967295)
  select (extract(epoch from ${clockSql(now)} - (select q.at from p, ${s}.conservation_pass q where q.no > p.no order by q.no limit 1)) * 1000)::bigint::text,
    (extract(epoch from ${clockSql(now)} - (select since from h)) * 1000)::bigint::text, (select what from h)`;

export async function heldBack(ask: Ask, s: string, { now }: At = {}): Promise<HeldBack | null> {
  const [row] = await ask(heldSql(s, now));
  const ms = Math.max(Number(row?.[0] ?? 0), Number(row?.[1] ?? 0));
  if (ms < NAMED_MS_MIN) return null;
  const what = row?.[2] ?? "a transaction that this role may not see";
  const long = ms < 120_000 ? `${Math.round(ms / 1_000)} s` : `${Math.round(ms / 60_000)} minutes`;
  return {
    words: `${what} is open for ${long}: what was written since it began is not counted before it ends`,
    unproven: ms >= HELD_MS_MAX,
  };
}
