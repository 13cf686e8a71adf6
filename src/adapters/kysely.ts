/**
 * Kysely: `db.transaction().execute((trx) => mg.enqueue(…, { tx: fromKysely(trx) }))`, controlled transactions too. The query
 * handed over is what its own `CompiledQuery.raw` makes.
 */
import type { Transaction } from "../store/store.ts";

export interface KyselyTransaction {
  readonly isTransaction: true;
  executeQuery(query: {
    readonly sql: string;
    readonly parameters: readonly unknown[];
    readonly query: { readonly kind: "RawNode"; readonly sqlFragments: readonly string[]; readonly parameters: readonly never[] };
    readonly queryId: { readonly queryId: string };
  }): Promise<{ rows: unknown[] }>;
}

export function fromKysely(trx: KyselyTransaction): Transaction {
  const adapted = {
    async query(text: string, values: unknown[] = []) {
      const query = { kind: "RawNode" as const, sqlFragments: [text], parameters: [] };
      const { rows } = await trx.executeQuery({ sql: text, parameters: values, query, queryId: { queryId: "makegood" } });
      return { rows };
    },
    getTransactionStatus: () => ((trx.isTransaction as boolean) ? "T" : "I"),
  };
  return adapted;
}
