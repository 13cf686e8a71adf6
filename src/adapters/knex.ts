/**
 * Knex and Objection: `knex.transaction((trx) => mg.enqueue(…, { tx: fromKnex(trx) }))`. Knex counts its parameters as `?`
 * in order, so each `$n` becomes one, as often as it occurs; values travel as bindings and are never part of the text.
 */
import type { Transaction } from "../store/store.ts";

export interface KnexTransaction {
  readonly isTransaction?: boolean;
  isCompleted(): boolean;
  raw(sql: string, bindings: readonly unknown[]): PromiseLike<{ rows: unknown[] }>;
}

export function fromKnex(trx: KnexTransaction): Transaction {
  const adapted = {
    async query(text: string, values: unknown[] = []) {
      const bindings = [...text.matchAll(/\$(\d+)/g)].map(([, n]) => values[Number(n) - 1]);
      const sql = text.replaceAll("?", "\\?").replace(/\$\d+/g, "?");
      return { rows: (await trx.raw(sql, bindings)).rows };
    },
    getTransactionStatus: () => (trx.isTransaction ? "T" : "I"),
  };
  return adapted;
}
