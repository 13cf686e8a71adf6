/**
 * MikroORM 6: a unit of work in `transactional()`, and one begun by hand.
 */
import { EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import { fromMikroOrm } from "../../../src/adapters/index.ts";
import type { LibraryKind } from "../support/library.ts";

const entity = (schema: string) =>
  new EntitySchema<{ note: string }>({
    name: "business",
    tableName: "business",
    schema,
    properties: { note: { type: "text", primary: true } },
  });

const connect = (url: string, business: ReturnType<typeof entity>) =>
  MikroORM.init({
    clientUrl: url,
    entities: [business],
    pool: { min: 0, max: 2 },
    discovery: { warnWhenNoEntities: false },
  });

export const mikroOrm: LibraryKind = {
  name: "MikroORM",
  async open(url, schema) {
    const business = entity(schema);
    const orm = await connect(url, business);
    return {
      transaction: (work) =>
        orm.em.fork().transactional((em) =>
          work({
            tx: fromMikroOrm(em),
            // Left to the flush at commit, as people do.
            write: async (note) => em.persist(em.create(business, { note })),
          }),
        ),
      mistakes: { "the root em": fromMikroOrm(orm.em), "a fork that has not begun": fromMikroOrm(orm.em.fork()) },
      close: () => orm.close(),
    };
  },
};

export const mikroOrmByHand: LibraryKind = {
  name: "MikroORM, begun by hand",
  async open(url, schema) {
    const business = entity(schema);
    const orm = await connect(url, business);
    return {
      async transaction(work) {
        const em = orm.em.fork();
        await em.begin();
        try {
          const result = await work({ tx: fromMikroOrm(em), write: (note) => em.insert(business, { note }) });
          await em.commit();
          return result;
        } catch (error) {
          await em.rollback();
          throw error;
        }
      },
      mistakes: {},
      close: () => orm.close(),
    };
  },
};
