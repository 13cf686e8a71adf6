/**
 * TypeORM: `dataSource.transaction((manager) => mg.enqueue(…, { tx: fromTypeOrm(manager) }))`, or a query runner after
 * `startTransaction()`. A manager outside of a transaction has no query runner, and is refused.
 */
import type { Transaction } from "../store/store.ts";

export interface TypeOrmRunner {
  readonly isTransactionActive: boolean;
  query(text: string, values?: unknown[]): Promise<unknown>;
}

export interface TypeOrmManager {
  readonly queryRunner?: TypeOrmRunner | undefined;
}

export function fromTypeOrm(managerOrRunner: TypeOrmManager | TypeOrmRunner): Transaction {
  const runner = "isTransactionActive" in managerOrRunner ? managerOrRunner : managerOrRunner.queryRunner;
  const adapted = {
    query: async (text: string, values: unknown[] = []) => ({ rows: (await runner?.query(text, values)) as unknown[] }),
    getTransactionStatus: () => (runner?.isTransactionActive ? "T" : "I"),
  };
  return adapted;
}
