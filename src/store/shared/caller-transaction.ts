/**
 * The caller's transaction: anything with `query(text, values)`. A pool is refused (its statements share no transaction), and so is
 * what has not begun one.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Transaction } from "../store.ts";

/** What node-postgres and the adapters tell of themselves. */
interface MaybePg {
  readonly totalCount?: unknown;
  readonly idleCount?: unknown;
  getTransactionStatus?(): string | null;
}

export type TextRows = (string | null)[][];

/** Rows as arrays, whatever the driver makes of them: plugins of query builders rename columns. Every column is text. */
export function rowsOf({ rows }: { rows: unknown[] }): TextRows {
  return rows.map((row) => (Array.isArray(row) ? row : Object.values(row as object)) as TextRows[number]);
}

const refusal = (why: string): MakegoodError => new MakegoodError("not_a_transaction", `\`tx\` ${why}`);

export function refusePool(tx: Transaction): void {
  const it = tx as (Transaction & MaybePg) | undefined;
  if (typeof it?.query !== "function") {
    throw refusal("has no query(text, values): pass a client inside a transaction, or an adapter of makegood/adapters");
  }
  if (it.totalCount !== undefined || it.idleCount !== undefined) {
    throw refusal("is a pool: each of its statements may run on another connection; connect(), BEGIN, and pass that client");
  }
  if (it.getTransactionStatus?.() === "I") throw refusal("has not begun a transaction: BEGIN first");
}

/**
 * Refuses what is in no transaction block: what we write would commit without the caller's own write. Where the driver or the
 * adapter knows (T: in one, E: in a failed one), no question is needed. Otherwise the server is asked: a setting that is local to
 * a transaction is gone at the next statement unless both stand in one block. The clocks cannot tell: with parameters,
 * statement_timestamp() is later than transaction_timestamp() outside of one, too.
 */
export async function requireBlock(tx: Transaction, ask: (text: string) => Promise<TextRows>): Promise<void> {
  if ((tx as Transaction & MaybePg).getTransactionStatus?.()) return;
  await ask("select set_config('makegood.in_block', 'yes', true) as a");
  const [row] = await ask("select current_setting('makegood.in_block', true) as a");
  if (row?.[0] === "yes") return;
  throw refusal("is not inside a transaction, so this would commit without your own write: BEGIN first and pass that connection");
}
