/**
 * What the first messages of a process wait for: a worker that has found nothing to do opens and prepares what its first claim and settle need,
 * writes nothing by it, and a claim after a short one takes the short form whatever it may ask for.
 */
import { expect, it } from "vitest";
import { createConnection } from "../../src/store/postgres/connection.ts";
import { createWatermarks } from "../../src/store/postgres/watermark.ts";
import { databaseUrl, dropSchema, openStore, withClient } from "../support/postgres.ts";
import { until } from "../support/processes.ts";

it("connections that were warmed are open, and their statements prepared", async () => {
  const connection = createConnection({ url: databaseUrl() });
  await connection.open();
  await connection.warm(2, [{ name: "warmed", text: "select $1::int", values: [1] }]);
  const text =
    "select pg_backend_pid()::text, (select count(*) from pg_prepared_statements where name = 'warmed')::text, pg_sleep(0.2)::text";
  const rows = (await Promise.all([1, 2].map(() => connection.rows("ask", text, [])))).flat();
  await connection.close();
  expect(new Set(rows.map(([pid]) => pid)).size).toBe(2);
  expect(rows.map(([, prepared]) => prepared)).toEqual(["1", "1"]);
});

it("a worker that rests has two connections that claimed and settled nothing", async () => {
  const store = await openStore();
  const claimed = async (): Promise<number> => {
    const { rows } = await withClient((client) =>
      client.query("select count(*)::int as n from pg_stat_activity where query ilike '%skip locked%' and query like $1", [
        `%"${store.schema}"%`,
      ]),
    );
    return rows[0].n;
  };
  expect(await claimed()).toBe(0);
  await store.idle("worker", true);
  await until("two connections have claimed", async () => (await claimed()) === 2);
  const { rows } = await withClient((client) => client.query(`select count(*)::int as n from "${store.schema}".lease`));
  expect(rows[0].n).toBe(0);
  await store.close();
  await dropSchema(store.schema);
});

it("a mark that could not be written is written the next time, and the last word of many counts", async () => {
  const store = await openStore();
  const sql = (text: string) => withClient((client) => client.query(text));
  const marks = async () => (await sql(`select owner from "${store.schema}".waiter`)).rows.map(({ owner }) => owner);
  await sql(`alter table "${store.schema}".waiter rename to waiter_away`);
  await expect(store.idle("worker", true)).rejects.toThrow();
  await sql(`alter table "${store.schema}".waiter_away rename to waiter`);
  await store.idle("worker", true);
  expect(await marks()).toEqual(["worker"]);
  await Promise.all(Array.from({ length: 21 }, (_, i) => store.idle("worker", i % 2 === 0)));
  expect(await marks()).toEqual(["worker"]);
  await store.idle("worker", false);
  expect(await marks()).toEqual([]);
  await store.close();
  await dropSchema(store.schema);
});

it("a lane ran dry while its claims bring next to nothing", () => {
  const marks = createWatermarks(() => 0);
  const rows = (count: number) => [
    [null, null, null, null, "1", "t", null],
    ...Array.from({ length: count }, (_, i) => [`id${i}`, "7", "1", "0", null, null, "{}"]),
  ];
  expect(marks.ranDry(7)).toBe(false);
  marks.advance([{ id: 7, limit: 100 }], rows(1));
  expect(marks.ranDry(7)).toBe(true);
  marks.advance([{ id: 7, limit: 100 }], rows(40));
  expect(marks.ranDry(7)).toBe(false);
});
