/**
 * Our statements in the caller's transaction: rows as arrays from every driver, prepared where the connection is our own server's.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import { rowsOf, type TextRows } from "../shared/caller-transaction.ts";
import { hasSqlState, isLostTransaction } from "../shared/sql-state.ts";
import type { Transaction } from "../store.ts";
import type { Db } from "./db.ts";
import { queryText, TextQuery } from "./text-query.ts";

interface MaybePg {
  readonly processID?: unknown;
  readonly port?: unknown;
  readonly host?: unknown;
  readonly connection?: unknown;
  readonly pipeline?: unknown;
}

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
export async function queryIn(db: Db, tx: Transaction, text: string, values: unknown[], name?: string): Promise<TextRows> {
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
async function rowsIn(db: Db, tx: Transaction, text: string, values: unknown[], name?: string): Promise<TextRows> {
  if (isOurServer(db, tx)) return queryText(tx as never, new TextQuery(text, values, name));
  return rowsOf(await tx.query(text, values));
}

/**
 * A node-postgres client of the server that we found to be direct may prepare statements; anything else may sit behind a pooler. One that
 * sends ahead takes only the driver's own queries.
 */
function isOurServer(db: Db, tx: Transaction): boolean {
  const it = tx as MaybePg;
  if (!db.connection.direct || typeof it.processID !== "number" || it.connection === undefined) return false;
  if (it.pipeline) return false;
  const ours = db.connection.address;
  return it.host === ours.host && it.port === ours.port;
}
