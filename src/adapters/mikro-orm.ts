/**
 * MikroORM: `em.transactional((em) => mg.enqueue(…, { tx: fromMikroOrm(em) }))`. Its transaction is Knex's in version 6 and
 * Kysely's in version 7, and is used as such: its own `execute` would write the payload into the text of the statement.
 */
import type { Transaction } from "../store/store.ts";

export interface MikroOrmManager {
  isInTransaction(): boolean;
  getTransactionContext(): unknown;
}

interface Knex6 {
  raw(sql: string, bindings: unknown[]): PromiseLike<{ rows: unknown[] }>;
}
interface Kysely7 {
  executeQuery(query: object): Promise<{ rows: unknown[] }>;
}

export function fromMikroOrm(em: MikroOrmManager): Transaction {
  const adapted = {
    async query(text: string, values: unknown[] = []) {
      const trx = em.getTransactionContext() as Knex6 | Kysely7;
      if ("executeQuery" in trx) {
        const query = { kind: "RawNode", sqlFragments: [text], parameters: [] };
        return trx.executeQuery({ sql: text, parameters: values, query, queryId: { queryId: "makegood" } });
      }
      const bindings = [...text.matchAll(/\$(\d+)/g)].map(([, n]) => values[Number(n) - 1]);
      const sql = text.replaceAll("?", "\\?").replace(/\$\d+/g, "?");
      return trx.raw(sql, bindings);
    },
    getTransactionStatus: () => (em.isInTransaction() ? "T" : "I"),
  };
  return adapted;
}
