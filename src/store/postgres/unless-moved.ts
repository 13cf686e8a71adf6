/** Two that take the same day or month out of its table: the second one finds it changed meanwhile, which is no fault. */
import { hasSqlState } from "../shared/sql-state.ts";
import type { Connection } from "./connection.ts";

/** It is not there, is no partition, or is about to be none. */
const MOVED = /^(42P01|42809|55000)$/;

/** Whether it is there, in its place, and on its way out. */
async function standing(connection: Connection, s: string, table: string): Promise<string | undefined> {
  const text = `select (i.inhrelid is not null)::text || coalesce(i.inhdetachpending, false)::text
    from pg_class c left join pg_inherits i on i.inhrelid = c.oid where c.relnamespace = to_regnamespace($1) and c.relname = $2`;
  return (await connection.rows("look at a partition", text, [s, table], { reads: true }))[0]?.[0] ?? undefined;
}

/** What `work` comes to; `otherwise` where it failed because another one moved the table meanwhile. */
export async function unlessMoved<T>(
  { connection, s }: { readonly connection: Connection; readonly s: string },
  table: string,
  otherwise: T,
  work: () => Promise<T>,
): Promise<T> {
  const before = await standing(connection, s, table);
  if (before === undefined) return otherwise;
  try {
    return await work();
  } catch (thrown) {
    const { cause = thrown } = thrown as { cause?: unknown };
    if (!hasSqlState(cause, MOVED) || (await standing(connection, s, table)) === before) throw thrown;
    return otherwise;
  }
}
