/**
 * postgres.js: `sql.begin((tx) => mg.enqueue(…, { tx: fromPostgresJs(tx) }))`. The root `sql` is a pool, known by its
 * `begin`, and is refused; whether a transaction or a reserved connection is still inside BEGIN, only the server can say.
 */
import type { Transaction } from "../store/store.ts";

interface PostgresJs {
  unsafe(text: string, values?: unknown[]): PromiseLike<readonly unknown[]>;
}

/** Of `sql.begin`, or a reserved connection inside BEGIN. */
export type PostgresJsTransaction = PostgresJs & ({ readonly savepoint: unknown } | { readonly release: unknown });

export function fromPostgresJs(sql: PostgresJsTransaction): Transaction {
  const adapted = {
    query: async (text: string, values: unknown[] = []) => ({ rows: [...(await sql.unsafe(text, values))] }),
    getTransactionStatus: () => ("begin" in sql ? "I" : null),
  };
  return adapted;
}
