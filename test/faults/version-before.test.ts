/**
 * Order while a process of the version before still runs (N17), with that version's own statements and scripts (from its tree, word for
 * word): what it accepts has its place, what it had in flight keeps it, and a worker that goes by ids gets nothing ordered on PostgreSQL.
 */
import { readFileSync } from "node:fs";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedMessage } from "../../src/message/message.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createConnection, migrateUp } from "../../src/store/postgres/index.ts";
import { KERNEL_SET } from "../../src/store/postgres/migrate.ts";
import { daysAround, ensurePartitions } from "../../src/store/postgres/partitions.ts";
import type { Store } from "../../src/store/store.ts";
import { DELIVERED, definition, KEYED, newMessage } from "../../src/testing/store-conformance/fixtures.ts";
import { settles } from "../../src/testing/store-conformance/scene.ts";
import { databaseUrl, dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { freshPrefix, openRedisStore } from "../support/redis-store.ts";

const textOf = (name: string): string => readFileSync(new URL(`../support/version-before/${name}`, import.meta.url), "utf8");
/** Ids of a clock that is ahead and of one that is behind. */
const [ahead, behind] = [60_000, -60_000].map((off) => createIds({ ...systemClock, wallMs: () => systemClock.wallMs() + off }));
const ofKey = (id: string, orderingKey: string) => newMessage(id, { topic: KEYED, orderingKey });

async function claimNow(store: Store): Promise<ClaimedMessage[]> {
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 10 }));
  return store.claim({ owner: "new", leaseMs: 30_000, lanes });
}

/** What comes out, key by key, and that no two of a key come at once. */
async function drained(store: Store): Promise<Record<string, string[]>> {
  const came: Record<string, string[]> = {};
  for (;;) {
    const batch = await claimNow(store);
    if (batch.length === 0) return came;
    expect(new Set(batch.map((one) => one.orderingKey)).size).toBe(batch.length);
    for (const { id, orderingKey } of batch) {
      const key = orderingKey as string;
      came[key] = [...(came[key] ?? []), id];
    }
    await store.settle(settles(batch, DELIVERED));
  }
}

describe("PostgreSQL", () => {
  /** The version before had eight migrations. */
  async function oldDatabase(): Promise<{ schema: string; lane: number; sql: (name: string) => string }> {
    const schema = freshSchema();
    const connection = createConnection({ url: databaseUrl() });
    await connection.open();
    await migrateUp(connection, schema, { ...KERNEL_SET, migrations: KERNEL_SET.migrations.slice(0, 8) });
    await ensurePartitions(connection, `"${schema}"`, daysAround(Date.now()));
    const insert = `with t as (insert into "${schema}".topic (name, definition, source) values ($1, $2, 'code') returning id)
      insert into "${schema}".lane (topic_id, kind) select id, 3 from t returning id`;
    const [row] = await connection.rows("make a lane", insert, [KEYED, JSON.stringify(definition(KEYED, "key"))]);
    await connection.close();
    return { schema, lane: Number(row?.[0]), sql: (name) => textOf(name).replaceAll("SCHEMA", `"${schema}"`) };
  }

  it("what was waiting, in flight and enqueued by the version before has its place", async () => {
    const { schema, lane, sql } = await oldDatabase();
    const old = {
      enqueue: (client: pg.Client, ids: readonly string[], key: string) =>
        client.query(sql("enqueue.sql"), [
          `{${ids.join(",")}}`,
          `{${ids.map(() => lane).join(",")}}`,
          ids.map(() => "{}").join("\u001e"),
          ids.map(() => key).join("\u001e"),
        ]),
      claim: async (client: pg.Client) =>
        (
          await client.query({
            text: sql("claim-ordered.sql"),
            values: [[lane], [10], [""], "old", 30_000, 1e9, true],
            rowMode: "array",
          })
        ).rows as string[][],
      retry: (client: pg.Client, lease: string, token: string, id: string) =>
        client.query(sql("settle.sql"), [
          ...[[lease], [token], [true], [id], [1], [2], [1], [3], [true], [0], [lane], [0], [true], [0], [false]],
          ...[[1], ["http_503"], ["away"], [null], [null]],
        ]),
    };
    await withClient(async (client) => {
      const first = [behind!(), behind!(), behind!()];
      await old.enqueue(client, first, "a");
      const [head, ...claimed] = await old.claim(client);
      expect(claimed.map(([id]) => id)).toEqual(first.slice(0, 1));

      const store = await openStore({ schema });
      const second = [ahead!(), behind!()];
      await store.enqueue([ofKey(second[0]!, "a")]);
      await old.enqueue(client, [behind!(), behind!()], "b");
      await store.enqueue([ofKey(second[1]!, "a")]);
      const third = behind!();
      await old.enqueue(client, [third], "a");
      const inSql = await client.query(`select id from "${schema}".enqueue($1, '{}', ordering_key => 'a')`, [KEYED]);
      const last = behind!();
      await store.enqueue([ofKey(last, "a")]);

      // The key b is free, but not for a worker that goes by ids.
      expect((await old.claim(client)).slice(1)).toEqual([]);
      // While it is in flight there, all behind it is looked at here, and stays behind.
      expect((await claimNow(store)).map((one) => one.orderingKey)).toEqual(["b"]);
      await old.retry(client, head?.[4] as string, head?.[5] as string, first[0] as string);
      const { a } = await drained(store);
      expect(a).toEqual([...first, ...second, third, inSql.rows[0].id, last]);
      await store.close();
    });
    await dropSchema(schema);
  });

  it("a key opens for those behind it when the version before ends what it had in flight", async () => {
    const { schema, lane, sql } = await oldDatabase();
    await withClient(async (client) => {
      const [id, next] = [behind!(), behind!()];
      await client.query(sql("enqueue.sql"), [`{${id}}`, `{${lane}}`, "{}", "a"]);
      const claim = {
        text: sql("claim-ordered.sql"),
        values: [[lane], [10], [""], "old", 30_000, 1e9, true],
        rowMode: "array" as const,
      };
      const [head] = (await client.query(claim)).rows as string[][];
      const store = await openStore({ schema });
      await store.enqueue([ofKey(next, "a")]);
      expect(await claimNow(store)).toEqual([]);
      await client.query(sql("settle.sql"), [
        ...[[head?.[4]], [head?.[5]], [true], [id], [1], [1], [1], [1], [true], [0], [lane], [0], [true], [0], [false]],
        ...[[1], [null], [null], [null], [null]],
      ]);
      expect(await drained(store)).toEqual({ a: [next] });
      await store.close();
    });
    await dropSchema(schema);
  });

  it("what waits is not touched by the upgrade, so it takes no time: its number is 0, and its id says the order", async () => {
    const { schema, lane, sql } = await oldDatabase();
    const ids = Array.from({ length: 100 }, () => behind!());
    await withClient(async (client) => {
      await client.query(sql("enqueue.sql"), [
        `{${ids.join(",")}}`,
        `{${ids.map(() => lane).join(",")}}`,
        ids.map(() => "{}").join("\u001e"),
        ids.map((_, i) => `k${i % 5}`).join("\u001e"),
      ]);
      const at = `select sum(('x' || substr(md5(xmin::text || ctid::text), 1, 8))::bit(32)::bigint) from "${schema}".ready_ordered`;
      const rows = (await client.query(at)).rows;
      const store = await openStore({ schema });
      expect((await client.query(at)).rows).toEqual(rows);
      const came = await drained(store);
      for (let k = 0; k < 5; k++) expect(came[`k${k}`]).toEqual(ids.filter((_, i) => i % 5 === k));
      await store.close();
    });
    await dropSchema(schema);
  });
});

describe("Redis", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  it("what the version before accepts has its place, and what it gives back is in front", async () => {
    const prefix = freshPrefix();
    const store = await openRedisStore({ redis: server.url, prefix });
    await store.topics.put(definition(KEYED, "key"), "code");
    const root = `{${prefix}}:`;
    const lane = `o:0:${KEYED}:`;
    const old = {
      enqueue: (id: string, key: string) => {
        const keys = [...["dedupe", "lanes", "accepted", "waiters", `m:${id}`, `t:${KEYED}`].map((name) => root + name)];
        return server.ask(
          "EVAL",
          textOf("enqueue.lua"),
          String(keys.length),
          ...keys,
          root,
          "",
          "old",
          "",
          "1",
          KEYED,
          "",
          "0",
          key,
          "1",
          "",
          "",
          "{}",
        );
      },
      claim: (lease: string) =>
        server.ask("EVAL", textOf("claim.lua"), "0", root, "", "old", "old", "30000", "", lease, "token", lane, "10") as Promise<
          string[]
        >,
      retry: (lease: string, id: string) => {
        const keys = ["leased", "lanes", "settled", "waiters", `e:${lease}`, `m:${id}`].map((name) => root + name);
        const args = ["1", "token", "1", "r", "1", "1|retry|1|", "|1|", "0", "1", "0", "[null,null]"];
        return server.ask("EVAL", textOf("settle.lua"), String(keys.length), ...keys, root, "", "old", ...args);
      },
    };
    const ids = Array.from({ length: 7 }, (_, i) => (i % 2 === 0 ? behind!() : ahead!()));
    await old.enqueue(ids[0]!, "a");
    await old.enqueue(ids[1]!, "a");
    expect((await old.claim("one"))[0]).toBe(ids[0]);
    await store.enqueue([ofKey(ids[2]!, "a")]);
    await pause();
    // It would be the head by its id alone; nothing is in flight when it comes.
    await old.retry("one", ids[0]!);
    await old.enqueue(ids[3]!, "a");
    await old.enqueue(ids[4]!, "a");
    await store.enqueue([ofKey(ids[5]!, "a")]);
    await pause();
    await old.enqueue(ids[6]!, "a");
    const { a } = await drained(store);
    // Those of the version before have no order of their own among each other but that of their ids.
    expect(a).toEqual([ids[0], ids[1], ids[2], ...[ids[3]!, ids[4]!].sort(), ids[5], ids[6]]);
    await store.close();
  });

  /** The moment at which the version before accepts is all that it writes, to the millisecond. */
  const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
});
