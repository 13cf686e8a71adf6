/**
 * Passes beside everything that moves messages, on PostgreSQL: transactions that stay open or are undone, and dead letters that are opened again, too.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { sleep, systemClock } from "../../src/platform/clock.ts";
import { beginTransaction, openStore } from "../support/postgres.ts";
import { LOAD_MS, loaded } from "./load.ts";
import { type VerifyScene, verifyScene } from "./scene.ts";

let scene: VerifyScene;
beforeAll(async () => {
  scene = await verifyScene();
});
beforeEach(() => scene.empty());
afterAll(() => scene.close());

it(
  "cries no wolf while messages are accepted, delivered, die, are replayed, resolved, opened again and retired",
  async () => {
    const { store, schema, client } = scene;
    const other = await openStore({ schema });
    const { accepted, retired, refused, reports } = await loaded({
      stores: [store, other],
      async enqueue(messages) {
        const inTransaction = Math.random() < 0.3 ? await beginTransaction() : null;
        try {
          if (inTransaction) await inTransaction.tx.query("savepoint s");
          await store.enqueue(messages, inTransaction ? { tx: inTransaction.tx as never } : {});
          await sleep(systemClock, Math.random() * 30);
          const undone = inTransaction !== null && Math.random() < 0.3;
          await (undone ? inTransaction?.rollback() : inTransaction?.commit());
          return undone ? 0 : messages.length;
        } catch (thrown) {
          await inTransaction?.rollback().catch(() => undefined);
          throw thrown;
        }
      },
      async some() {
        const { rows } = await client.query(
          "(select id::text from dead_letter where resolution < 3 order by random() limit 20) union all (select id::text from ready limit 5)",
        );
        return rows.map(({ id }) => id);
      },
      also: async (id) =>
        Math.random() < 0.3 &&
        store.home.transaction("test", ({ intervene }) => intervene("reopen", [{ id }], { actor: "t", reason: null }, {})),
      refusal: /is detached from message/,
    });
    await other.close();
    const last = await scene.verify("full");
    expect([...reports, last].flatMap(({ divergences }) => divergences)).toEqual([]);
    expect(last.state).toBe("whole");
    expect(last.totals?.accepted).toBe(accepted);
    expect(reports.length).toBeGreaterThan(0);
    expect(retired).toBeGreaterThan(0);
    expect(last.totals?.archived).toBe(retired);
    expect(refused.length).toBeLessThan(accepted / 10);
  },
  LOAD_MS + 60_000,
);
