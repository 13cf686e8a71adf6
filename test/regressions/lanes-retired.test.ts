/**
 * N21: lanes that had nothing for a day are deleted, and nobody loses anything by it: not the process that still knows them, by any of the
 * ways in, not a transaction that is older than their end, not a message that goes back to a sibling.
 */
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Accepted, ClaimedMessage, NewMessage } from "../../src/message/message.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { type Connection, createConnection } from "../../src/store/postgres/connection.ts";
import { createDb } from "../../src/store/postgres/db.ts";
import { createRetireLanes } from "../../src/store/postgres/statements/retire-lanes.ts";
import type { Store } from "../../src/store/store.ts";
import { DELIVERED, KEYED, newMessage, PLAIN, retry, sorted, TOPICS } from "../../src/testing/store-conformance/fixtures.ts";
import { settles } from "../../src/testing/store-conformance/scene.ts";
import { databaseUrl, dropSchema, freshSchema, openStore } from "../support/postgres.ts";

const id = createIds();
const message = (fields: Partial<NewMessage> = {}) => newMessage(id(), { tenantId: "quiet", ...fields });
const REPEATABLE = "begin isolation level repeatable read";
let schema: string;
let knows: Store;
let other: Store;
let client: pg.Client;
let connection: Connection;
let retire: () => Promise<number>;

beforeEach(async () => {
  schema = freshSchema();
  knows = await openStore({ schema });
  other = await openStore({ schema });
  for (const topic of TOPICS) await knows.topics.put(topic, "code");
  client = new pg.Client({ connectionString: databaseUrl() });
  await client.connect();
  connection = createConnection({ url: databaseUrl() });
  await connection.open();
  retire = createRetireLanes(createDb(connection, `"${schema}"`, systemClock), 0);
});

afterEach(async () => {
  await client.end();
  await connection.close();
  await knows.close();
  await other.close();
  await dropSchema(schema);
});

async function claimAll(store: Store): Promise<ClaimedMessage[]> {
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 100 }));
  return lanes.length > 0 ? store.claim({ owner: "w", leaseMs: 30_000, lanes }) : [];
}

/** As if retention had passed: their bodies and what stands beside them. */
async function forgetBodies(ids: readonly string[]): Promise<void> {
  for (const [table, column] of [
    ["attempt", "message_id"],
    ["dedupe", "id"],
    ["dead_letter", "id"],
    ["message", "id"],
  ])
    await client.query(`delete from "${schema}".${table} where ${column} = any ($1::uuid[])`, [ids]);
}

/** Delivers what is there and lets it go. */
async function empty(store: Store): Promise<string[]> {
  const ids: string[] = [];
  for (let rounds = 0; rounds < 20; rounds++) {
    const claimed = await claimAll(store);
    if (claimed.length === 0) break;
    await store.settle(settles(claimed, DELIVERED));
    ids.push(...claimed.map((one) => one.id));
  }
  await forgetBodies(ids);
  return ids;
}

/** Asked on another connection than the transaction's. */
const laneCount = async () => Number((await connection.rows("test", `select count(*) from "${schema}".lane`, []))[0]?.[0]);

async function retireAll(): Promise<void> {
  for (let rounds = 0; rounds < 20 && (await laneCount()) > 0; rounds++) await retire();
  expect(await laneCount()).toBe(0);
}

const accepted = (results: readonly Accepted[]) => results.every(({ kind }) => kind === "accepted");

async function inTransaction(begin: string, work: () => Promise<unknown>): Promise<void> {
  await client.query(begin);
  await work();
  await client.query("commit");
}

const SQL_ENQUEUE = (fields: string) => `select id from "${schema}".enqueue('${PLAIN}', '{}', tenant_id => 'quiet'${fields})`;

describe("N21: retired lanes", () => {
  it("a caller that still knows a lane that is gone finds or makes it again, by every way in", async () => {
    const ways: Record<string, () => Promise<string[]>> = {
      single: async () => {
        const one = message();
        expect(accepted(await knows.enqueue([one]))).toBe(true);
        return [one.id];
      },
      "with a key": async () => {
        const one = message({ key: "k" });
        expect(accepted(await knows.enqueue([one]))).toBe(true);
        return [one.id];
      },
      batch: async () => {
        const all = [message(), message({ key: "b", priority: 3 }), message({ topic: KEYED, orderingKey: "o" })];
        expect(accepted(await knows.enqueue(all))).toBe(true);
        return all.map((one) => one.id);
      },
      "many callers at once": async () => {
        const all = Array.from({ length: 20 }, () => message());
        for (const results of await Promise.all(all.map((one) => knows.enqueue([one])))) expect(accepted(results)).toBe(true);
        return all.map((one) => one.id);
      },
      transaction: async () => {
        const all = [message(), message({ key: "t" })];
        await inTransaction("begin", async () => {
          for (const one of all) expect(accepted(await knows.enqueue([one], { tx: client }))).toBe(true);
        });
        return all.map((one) => one.id);
      },
      "SQL function": async () => (await client.query(SQL_ENQUEUE(", key => 's'"))).rows.map((row) => row.id),
    };
    for (const [name, way] of Object.entries(ways)) {
      const before = await way();
      await knows.enqueue([message({ priority: 3 }), message({ topic: KEYED, orderingKey: "o" })]);
      expect(await empty(other)).toEqual(expect.arrayContaining(before));
      await retireAll();
      const ids = await way();
      const arrived = (await claimAll(other)).map((one) => one.id);
      expect(sorted(arrived), name).toEqual(sorted(ids));
      await forgetBodies(arrived);
      await client.query(`delete from "${schema}".lease; delete from "${schema}".order_lock`);
    }
  }, 60_000);

  it("a transaction whose snapshot is older than the retirement loses nothing, also where others made the lane again", async () => {
    for (const others of [false, true]) {
      await knows.enqueue([message()]);
      await other.enqueue([message()]);
      await empty(knows);
      const [one, batch] = [message(), [message({ key: `k-${others}` }), message()]];
      const ids = [one.id, ...batch.map((each) => each.id)];
      await inTransaction(REPEATABLE, async () => {
        await client.query("select 1 from pg_class limit 1");
        await retireAll();
        if (others) await other.enqueue([message({ id: ids[ids.push(id()) - 1] as string })]);
        expect(accepted(await knows.enqueue([one], { tx: client }))).toBe(true);
        expect(accepted(await knows.enqueue(batch, { tx: client }))).toBe(true);
      }).catch(async (thrown) => {
        await client.query("rollback");
        throw thrown;
      });
      expect(sorted(await empty(other))).toEqual(sorted(ids));
      await retireAll();
    }
  }, 60_000);

  it("the SQL function in such a transaction makes the lane again, twice in a row", async () => {
    await knows.enqueue([message()]);
    await empty(knows);
    const ids: string[] = [];
    await inTransaction(REPEATABLE, async () => {
      await client.query("select 1 from pg_class limit 1");
      await retireAll();
      for (const _ of [1, 2]) ids.push(...(await client.query(SQL_ENQUEUE(""))).rows.map((row) => row.id));
    });
    expect(sorted(await empty(other))).toEqual(sorted(ids));
  });

  it("a lane stays while a transaction that enqueued into it is open, and while anything of its family is there", async () => {
    await knows.enqueue([message()]);
    await empty(knows);
    const one = message();
    await client.query("begin");
    await knows.enqueue([one], { tx: client });
    for (let rounds = 0; rounds < 3; rounds++) await retire();
    expect(await laneCount()).toBe(1);
    await client.query("commit");
    const claimed = await claimAll(other);
    expect(claimed.map((each) => each.id)).toEqual([one.id]);
    await other.settle(settles(claimed, retry(3_600_000)));
    for (let rounds = 0; rounds < 3; rounds++) await retire();
    expect(await laneCount()).toBeGreaterThan(0);
    expect((await knows.get(one.id))?.status).toBe("pending");
  });

  it("what failed goes to the sibling of the lane it came from, not to one of the same name that is gone", async () => {
    const retried = retry(0, true, 0, true);
    await knows.enqueue([message()]);
    await knows.settle(settles(await claimAll(knows), retried));
    await empty(knows);
    await retireAll();
    const one = message();
    await other.enqueue([one]);
    const claimed = await claimAll(knows);
    expect(claimed.map((each) => each.id)).toEqual([one.id]);
    await knows.settle(settles(claimed, retried));
    expect(await empty(other)).toEqual([one.id]);
  });

  it("upkeep retires them a day after it found them empty, and what is left of an older version is waited for after an upgrade", async () => {
    const day = 86_400_000;
    const at = (days: number) => new Date(Date.now() + days * day);
    const upkeep = (days: number) => knows.prune({ keptMs: day, limit: 1_000, now: at(days) });
    await knows.enqueue([message(), message({ topic: KEYED, orderingKey: "o" })]);
    for (const claimed of [await claimAll(knows)]) await knows.settle(settles(claimed, DELIVERED));
    await upkeep(0.5);
    await upkeep(2);
    expect(await laneCount()).toBe(2);
    await upkeep(4);
    await upkeep(4.9);
    expect(await laneCount()).toBe(2);
    await client.query(`update "${schema}".migration set at = at - interval '10 days' where version = 1`);
    await upkeep(5.1);
    expect(await laneCount()).toBe(2);
    await upkeep(8);
    expect(await laneCount()).toBe(0);
  });

  it("enqueues by all ways race with retirements: none is lost", async () => {
    const promised = new Set<string>();
    const arrived = new Set<string>();
    const until = Date.now() + 2_500;
    let retired = 0;
    const loop = async (work: (turn: number) => Promise<void>) => {
      for (let turn = 0; Date.now() < until; turn++) await work(turn);
    };
    // Sparse enough that each is empty now and then.
    const of = (turn: number) => message({ tenantId: `t${(turn * 7) % 40}` });
    const own = new pg.Client({ connectionString: databaseUrl() });
    await own.connect();
    const promise = (all: readonly NewMessage[], results: readonly Accepted[]) => {
      expect(accepted(results)).toBe(true);
      for (const one of all) promised.add(one.id);
    };
    await Promise.all([
      loop(async (turn) => {
        const one = of(turn);
        promise([one], await knows.enqueue([one]));
      }),
      loop(async (turn) => {
        const all = [of(turn), of(turn + 1), { ...of(turn + 2), key: id() }];
        promise(all, await other.enqueue(all));
      }),
      loop(async (turn) => {
        await own.query(turn % 2 ? "begin" : REPEATABLE);
        const one = of(turn);
        const results = await knows.enqueue([one], { tx: own });
        await new Promise((resolve) => setTimeout(resolve, turn % 20));
        await own.query("commit");
        promise([one], results);
      }),
      loop(async () => {
        for (const each of await empty(other)) arrived.add(each);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }),
      loop(async () => {
        retired += await retire();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }),
    ]);
    await own.end();
    for (const each of await empty(knows)) arrived.add(each);
    expect([...promised].filter((each) => !arrived.has(each))).toEqual([]);
    expect(promised.size).toBeGreaterThan(20);
    expect(retired).toBeGreaterThan(3);
  }, 60_000);
});
