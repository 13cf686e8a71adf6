/**
 * The caller's transaction: anything with `query(text, values)`. A pool is refused (its statements share no
 * transaction), and so is a node-postgres client that has not begun one.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { Transaction } from "../store.ts";
import type { Db } from "./db.ts";
import { hasSqlState, isLostTransaction } from "./sql-errors.ts";

interface MaybePg {
  readonly totalCount?: unknown;
  readonly idleCount?: unknown;
  readonly processID?: unknown;
  readonly port?: unknown;
  readonly host?: unknown;
  readonly connection?: unknown;
  getTransactionStatus?(): string | null;
}

export function refusePool(tx: Transaction): void {
  const it = tx as Transaction & MaybePg;
  if (typeof it.query !== "function") {
    throw new MakegoodError(
      "not_a_transaction",
      "`tx` has no query(text, values): pass a client inside a transaction, or an adapter of makegood/adapters",
    );
  }
  if (it.totalCount !== undefined || it.idleCount !== undefined) {
    throw new MakegoodError(
      "not_a_transaction",
      "`tx` is a pool: each of its statements may run on another connection; connect(), BEGIN, and pass that client",
    );
  }
  if (it.getTransactionStatus?.() === "I") {
    throw new MakegoodError("not_a_transaction", "`tx` has not begun a transaction: BEGIN first, or leave `tx` out");
  }
}

/**
 * Refuses what is in no transaction block: the message would commit without the caller's own write. Where the driver or the
 * adapter knows (T: in one, E: in a failed one), no question is needed. Otherwise the server is asked: a setting that is local to
 * a transaction is gone at the next statement unless both stand in one block. The clocks cannot tell: with parameters,
 * statement_timestamp() is later than transaction_timestamp() outside of one, too.
 */
export async function requireBlock(db: Db, tx: Transaction): Promise<void> {
  if ((tx as Transaction & MaybePg).getTransactionStatus?.()) return;
  await queryIn(db, tx, "select set_config('makegood.in_block', 'yes', true) as a", []);
  const [row] = await queryIn(db, tx, "select current_setting('makegood.in_block', true) as a", []);
  if (row?.[0] === "yes") return;
  throw new MakegoodError(
    "not_a_transaction",
    "`tx` is not inside a transaction, so the message would commit without your own write: BEGIN first and pass that connection",
  );
}

type Rows = (string | null)[][];

/** A schema, a table, a column or a function of ours is not there. */
const NOT_OUR_TABLES = /^(3F000|42P01|42703|42883)$/;

export function wrongDatabase(db: Db, cause?: unknown): MakegoodError {
  const { host, port } = db.connection.address;
  return new MakegoodError(
    "wrong_database",
    `\`tx\` is a transaction of another database than this store's (schema ${db.s} at ${host}:${port}), so nothing was written: ` +
      "begin it on the database of the store's url, or leave `tx` out",
    {},
    cause,
  );
}

/** Runs a statement of ours in it. Nothing is tried again here: a conflict has undone the caller's own work, too. */
export async function queryIn(db: Db, tx: Transaction, text: string, values: unknown[], name?: string): Promise<Rows> {
  try {
    return await rowsIn(db, tx, text, values, name);
  } catch (thrown) {
    if (hasSqlState(thrown, NOT_OUR_TABLES)) throw wrongDatabase(db, thrown);
    if (!isLostTransaction(thrown)) throw thrown;
    const message = `enqueue: a concurrent transaction won (${errorText(thrown)}); run the whole transaction again`;
    throw new MakegoodError("retry_transaction", message, {}, thrown);
  }
}

/** Rows come back as arrays from every driver. */
async function rowsIn(db: Db, tx: Transaction, text: string, values: unknown[], name?: string): Promise<Rows> {
  if (isOurServer(db, tx)) {
    const client = tx as unknown as { query(config: object): Promise<{ rows: Rows }> };
    return (await client.query({ text, values, rowMode: "array", ...(name ? { name } : {}) })).rows;
  }
  const { rows } = await tx.query(text, values);
  return rows.map((row) => (Array.isArray(row) ? row : Object.values(row as object)) as Rows[number]);
}

/** A node-postgres client of the server that we found to be direct may prepare statements; anything else may sit behind a pooler. */
function isOurServer(db: Db, tx: Transaction): boolean {
  const it = tx as MaybePg;
  if (!db.connection.direct || typeof it.processID !== "number" || it.connection === undefined) return false;
  const ours = db.connection.address;
  return it.host === ours.host && it.port === ours.port;
}
