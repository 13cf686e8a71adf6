/**
 * What every step of a pass needs: the one row that says how far it has come, held for as long as the step lasts, so that two passes, or a
 * pass and retention, never count the same message twice.
 */
import type { Queryable, Row } from "../connection.ts";
import type { Db } from "../db.ts";

export const NO_ID = "00000000-0000-0000-0000-000000000000";
export const LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** A step of a pass is short; reading a whole day before it goes is not. */
const PATIENCE_MS = 3_600_000;

export interface Mark {
  readonly phase: number;
  readonly from: string;
  readonly to: string;
  readonly floor: string;
  readonly cursor: string;
  /** Where the comparison of ids is, and that which reads their bodies, too. */
  readonly walkAt: string;
  readonly deepAt: string;
}

export type Ask = (text: string, values?: unknown[]) => Promise<Row[]>;

/** Rows as arrays of text. */
export function asking(client: Queryable): Ask {
  const typed = client as unknown as { query(config: object): Promise<{ rows: Row[] }> };
  const types = { getTypeParser: () => (value: unknown) => value };
  return async (text, values = []) =>
    (await typed.query({ text, values, rowMode: "array", types, query_timeout: PATIENCE_MS })).rows;
}

export async function holdMark(ask: Ask, s: string): Promise<Mark | null> {
  const [row] = await ask(
    `select phase::text, from_xid::text, to_xid::text, floor::text, cursor::text, walk_at::text, deep_at::text from ${s}.conservation for update`,
  );
  if (!row) return null;
  const [phase, from, to, floor, cursor, walkAt, deepAt] = row as string[];
  return { phase: Number(phase), from, to, floor, cursor, walkAt, deepAt } as Mark;
}

/** A day that is neither a part of `message` nor gone: its rows are in no sum until retention has finished with it. */
export class HalfWay extends Error {}

/** After a reading: what was half way before it is found, and what was not has been read. */
export async function refuseHalfWay(ask: Ask, s: string): Promise<void> {
  const [row] = await ask(
    `select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
    where n.nspname = $1 and c.relkind = 'r' and c.relname ~ '^message_[0-9]{8}$' and (i.inhrelid is null or i.inhdetachpending) order by 1 limit 1`,
    [s.replaceAll('"', "")],
  );
  if (row)
    throw new HalfWay(`${row[0]} is detached from message: retention has not finished with it, or a person has detached it`);
}

/** One step, with the mark held. */
export function createStep(db: Db): <T>(work: (ask: Ask, mark: Mark) => Promise<T>) => Promise<T> {
  const { s } = db;
  const home = `(select i.xmin::text from ${s}.installation i)`;
  const begin = `insert into ${s}.conservation (to_xid, home_xid)
    select pg_snapshot_xmin(pg_current_snapshot())::text::bigint, ${home} on conflict do nothing`;
  /**
   * Read back from a dump, every row has a new transaction, and which were counted cannot be told any more: it is counted from the beginning.
   * The number of the pass goes on, so that a witness finds what the dump did not have.
   */
  const anew = async (ask: Ask): Promise<void> => {
    for (const table of ["bucket", "open", "day", "divergence"]) await ask(`delete from ${s}.conservation_${table}`);
    await ask(`truncate ${s}.conservation_seal`);
    await ask(`update ${s}.conservation set phase = 0, from_xid = 0, to_xid = pg_snapshot_xmin(pg_current_snapshot())::text::bigint, floor = '-infinity',
      cursor = '${NO_ID}', walk_at = '${NO_ID}', deep_at = '${NO_ID}', rolled_at = null, accepted_n = 0, accepted_hash = 0, seal_no = 0, head = '', home_xid = ${home}`);
  };
  return (work) =>
    db.connection.transaction("verify", async (client) => {
      const ask = asking(client);
      // Days are found by the ranges of their pages. Sequential scans stay off: of tables that grow faster than they are analyzed the planner
      // knows nothing, and would read all of one for each message.
      await ask("set local enable_bitmapscan = on");
      let mark = await holdMark(ask, s);
      if (!mark) {
        await refuseHalfWay(ask, s);
        await ask(begin);
        mark = (await holdMark(ask, s)) as Mark;
      }
      const [other] = await ask(`select 1 from ${s}.conservation where home_xid <> ${home}`);
      if (other) {
        await refuseHalfWay(ask, s);
        await anew(ask);
        mark = (await holdMark(ask, s)) as Mark;
      }
      return work(ask, mark);
    });
}
