/**
 * A receiver's inbox: a table in its own PostgreSQL database that makes a repeated key one effect. The key is written in the transaction
 * of the effect, so both commit or neither does; of two deliveries at once the second waits for the first and then is a repeat, or runs
 * if the first rolled back.
 */
import { hash as digest } from "node:crypto";
import { errorText, MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { checkFields, checkSetting, invalid, textProblem } from "../message/validate.ts";
import { refusePool, requireBlock, rowsOf, type TextRows } from "../store/shared/caller-transaction.ts";
import { hasSqlState, isLostTransaction } from "../store/shared/sql-state.ts";
import type { Transaction } from "../store/store.ts";
import { inboxStatements } from "./statements.ts";

export interface InboxOptions {
  /** Absent: `public`. Made by `migrate` if it does not exist. */
  readonly schema?: string | undefined;
  /** Absent: `makegood_inbox`. */
  readonly table?: string | undefined;
}

export interface OnceOptions {
  /** What the key belongs to, where two topics, tenants or senders may use the same one for different effects. */
  readonly scope?: string | undefined;
  /** The raw text or bytes: the same key with another payload is then refused as `key_conflict`. Only a hash is kept. */
  readonly payload?: string | Uint8Array | undefined;
}

export type Once<T> =
  | { readonly first: true; readonly result: T }
  /** `result`: what the first one returned, as JSON gives it back; undefined if it returned nothing. */
  | { readonly first: false; readonly result: T | undefined };

export interface PruneOptions {
  /** Longer than senders try and people replay: a key that is gone is new again. */
  readonly olderThanMs: number;
  /** Absent: 1,000. */
  readonly limit?: number | undefined;
}

export interface Inbox {
  /** What `migrate` runs, for a migration of your own. */
  sql(): string;
  /** Makes the table unless it is there. A pool will do. */
  migrate(db: Transaction): Promise<void>;
  /**
   * Runs `effect` if the key is new in this inbox, and keeps what it returns. If it throws, the key is free again and the error passes:
   * roll back, because what the effect had written by then is still in your transaction.
   */
  once<T>(tx: Transaction, key: string, effect: () => T | Promise<T>, options?: OnceOptions): Promise<Once<T>>;
  /** Forgets old keys, the oldest first and at most `limit` of them. A pool will do. `more`: call it again. */
  prune(db: Transaction, options: PruneOptions): Promise<{ readonly pruned: number; readonly more: boolean }>;
}

/** Room for a topic and a tenant. */
const SCOPE_BYTES_MAX = 2 * LIMITS.keyBytesMax;
const PRUNED_MAX = 10_000;
const NAME = /^[a-z_][a-z0-9_]{0,50}$/;

export function createInbox({ schema = "public", table = "makegood_inbox" }: InboxOptions = {}): Inbox {
  checkName("schema", schema);
  checkName("table", table);
  const sql = inboxStatements(schema, table);

  async function run(db: Transaction, text: string, values: unknown[] = []): Promise<TextRows> {
    try {
      return rowsOf(await db.query(text, values));
    } catch (thrown) {
      if (hasSqlState(thrown, /^(42P01|3F000|42703)$/)) {
        const remedy = "run migrate() of the inbox, or the statement that its sql() gives";
        throw new MakegoodError("schema_outdated", `inbox: ${schema}.${table} is missing or old; ${remedy}`, {}, thrown);
      }
      // 55P03: the receiver's own lock_timeout ended the wait for the first delivery.
      if (!isLostTransaction(thrown) && !hasSqlState(thrown, /^55P03$/)) throw thrown;
      const message = `inbox: a concurrent transaction won (${errorText(thrown)}); run the whole transaction again`;
      throw new MakegoodError("retry_transaction", message, {}, thrown);
    }
  }

  async function first<T>(tx: Transaction, place: readonly string[], effect: () => T | Promise<T>): Promise<Once<T>> {
    try {
      const result = await effect();
      const text = resultText(result);
      if (text !== undefined) await run(tx, sql.keep, [...place, text]);
      return { first: true, result };
    } catch (thrown) {
      // A caller may commit all the same. In a transaction that has failed this fails, too, and then nothing of it can commit.
      await run(tx, sql.remove, [...place]).catch(() => undefined);
      throw thrown;
    }
  }

  return {
    sql: () => `${sql.create};\n`,
    async migrate(db) {
      await run(db, sql.create);
    },
    async once<T>(tx: Transaction, key: string, effect: () => T | Promise<T>, options: OnceOptions = {}): Promise<Once<T>> {
      refusePool(tx);
      const place = placeOf(key, options.scope);
      const hash = options.payload === undefined ? null : digest("sha256", options.payload, "hex");
      await requireBlock(tx, (text) => run(tx, text));
      // A key may be pruned between the two statements; then it is new.
      for (let tries = 1; tries <= 2; tries++) {
        if ((await run(tx, sql.insert, [...place, hash])).length > 0) return first(tx, place, effect);
        const [row] = await run(tx, sql.read, [...place]);
        if (row) return repeat(row, hash, key);
      }
      throw new MakegoodError("retry_transaction", `inbox: key ${key} comes and goes; run the whole transaction again`, { key });
    },
    async prune(db, { olderThanMs, limit = LIMITS.batchMessagesMax }) {
      checkSetting("olderThanMs", olderThanMs, 0, Number.MAX_SAFE_INTEGER, false);
      checkSetting("limit", limit, 1, PRUNED_MAX);
      const [row] = await run(db, sql.prune, [String(olderThanMs), String(limit)]);
      const pruned = Number(row?.[0] ?? 0);
      return { pruned, more: pruned === limit };
    },
  };
}

function checkName(what: string, name: string): void {
  if (NAME.test(name) && !name.startsWith("pg_")) return;
  const allowed = "use lower-case letters, digits and _, at most 51, not starting with a digit or pg_";
  throw new MakegoodError("invalid_config", `inbox: ${what} name ${JSON.stringify(name)} is refused: ${allowed}`);
}

function placeOf(key: string, scope = ""): readonly string[] {
  if (typeof key !== "string") throw invalid("key", "must be a text of at least one character");
  checkFields({ key });
  const problem = scope === "" ? null : textProblem(scope, SCOPE_BYTES_MAX);
  if (problem !== null) throw invalid("scope", problem);
  return [scope, key];
}

function repeat<T>([known, text]: TextRows[number], hash: string | null, key: string): Once<T> {
  // A delivery that came without its payload has nothing to compare.
  if (hash !== null && known && known !== hash) {
    throw new MakegoodError("key_conflict", `inbox: key ${key} was used for another payload`, { key });
  }
  return { first: false, result: text ? (JSON.parse(text) as T) : undefined };
}

/** Undefined where there is nothing to keep. */
function resultText(result: unknown): string | undefined {
  let text: string | undefined;
  try {
    text = JSON.stringify(result);
  } catch (error) {
    // Often what a driver or an ORM returned, by an arrow function without braces.
    const text = `inbox: what the effect returned cannot be kept as JSON (${errorText(error)}): return plain data, or nothing`;
    throw new MakegoodError("invalid_payload", text, {}, error);
  }
  const limit = LIMITS.payloadBytesMax;
  const bytes = text === undefined ? 0 : Buffer.byteLength(text);
  if (bytes > limit)
    throw new MakegoodError("payload_too_large", `inbox: the result has ${bytes} bytes, over ${limit}`, { bytes, limit });
  return text;
}
