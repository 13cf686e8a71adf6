/**
 * Prisma: `prisma.$transaction((tx) => mg.enqueue(…, { tx: fromPrisma(tx) }))`. The client itself is known by `$connect`, which
 * a transaction does not have, and is refused.
 */
import type { Transaction } from "../store/store.ts";

export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
  readonly $connect?: undefined;
}

export function fromPrisma(tx: PrismaTransaction): Transaction {
  const adapted = {
    query: async (text: string, values: unknown[] = []) => ({ rows: (await tx.$queryRawUnsafe(text, ...values)) as unknown[] }),
    getTransactionStatus: () => (tx.$connect === undefined ? "T" : "I"),
  };
  return adapted;
}
