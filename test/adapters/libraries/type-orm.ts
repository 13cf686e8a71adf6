/**
 * TypeORM: the manager of `transaction()`, and a query runner after `startTransaction()`.
 */
import { DataSource, EntitySchema } from "typeorm";
import { fromTypeOrm } from "../../../src/adapters/index.ts";
import type { LibraryKind } from "../support/library.ts";

async function connect(url: string, schema: string) {
  const entity = new EntitySchema<{ note: string }>({
    name: "business",
    schema,
    columns: { note: { type: "text", primary: true } },
  });
  const source = new DataSource({ type: "postgres", url, entities: [entity], poolSize: 2 });
  await source.initialize();
  return { source, entity };
}

export const typeOrm: LibraryKind = {
  name: "TypeORM",
  async open(url, schema) {
    const { source, entity } = await connect(url, schema);
    const runner = source.createQueryRunner();
    return {
      transaction: (work) =>
        source.transaction((manager) =>
          work({ tx: fromTypeOrm(manager), write: (note) => manager.getRepository(entity).insert({ note }) }),
        ),
      mistakes: {
        "the root manager": fromTypeOrm(source.manager),
        "the data source": fromTypeOrm(source as never),
        "a query runner that has not begun": fromTypeOrm(runner),
      },
      close: async () => {
        await runner.release();
        await source.destroy();
      },
    };
  },
};

export const typeOrmRunner: LibraryKind = {
  name: "TypeORM, query runner",
  async open(url, schema) {
    const { source, entity } = await connect(url, schema);
    return {
      async transaction(work) {
        const runner = source.createQueryRunner();
        await runner.startTransaction();
        try {
          const write = (note: string) => runner.manager.getRepository(entity).insert({ note });
          const result = await work({ tx: fromTypeOrm(runner), write });
          await runner.commitTransaction();
          return result;
        } catch (error) {
          await runner.rollbackTransaction();
          throw error;
        } finally {
          await runner.release();
        }
      },
      mistakes: {},
      close: () => source.destroy(),
    };
  },
};
