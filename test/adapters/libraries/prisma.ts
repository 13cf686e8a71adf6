/**
 * Prisma with its node-postgres driver adapter, interactive transactions.
 */
import { PrismaPg } from "@prisma/adapter-pg";
import { fromPrisma, type PrismaTransaction } from "../../../src/adapters/index.ts";
import { PrismaClient } from "../node_modules/.makegood/prisma/index.js";
import type { LibraryKind } from "../support/library.ts";

export const prisma: LibraryKind = {
  name: "Prisma",
  async open(url, schema) {
    const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 2 }, { schema }) });
    const extended = client.$extends({ name: "nothing" });
    return {
      transaction: (work) =>
        client.$transaction((tx) => work({ tx: fromPrisma(tx), write: (note) => tx.business.create({ data: { note } }) })),
      mistakes: {
        "the client": fromPrisma(client as unknown as PrismaTransaction),
        "an extended client": fromPrisma(extended as unknown as PrismaTransaction),
      },
      close: () => client.$disconnect(),
    };
  },
};
