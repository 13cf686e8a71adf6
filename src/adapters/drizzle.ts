/**
 * Drizzle (PostgreSQL, over node-postgres or postgres.js): `db.transaction((tx) => mg.enqueue(…, { tx: fromDrizzle(tx) }))`.
 * Anything with `getSQL().toQuery()` is a query to it, so its own `sql` helper is not needed. Only a transaction can roll
 * back; Drizzle does not tell when one has ended, so whether it is still open is for the server to say.
 */
import type { Transaction } from "../store/store.ts";

export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
  rollback(): never;
}

export function fromDrizzle(tx: DrizzleTransaction): Transaction {
  const adapted = {
    async query(text: string, values: unknown[] = []) {
      const query = { getSQL: () => ({ toQuery: () => ({ sql: text, params: values }) }) };
      const result = (await tx.execute(query as never)) as unknown[] | { rows: unknown[] };
      return { rows: Array.isArray(result) ? [...result] : result.rows };
    },
    getTransactionStatus: () => (typeof tx.rollback === "function" ? null : "I"),
  };
  return adapted;
}
