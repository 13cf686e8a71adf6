/**
 * The second rung with a real Redis below a real PostgreSQL: the way down, the way up by put-if-absent, terminal records, attempts, and Redis
 * killed while it holds what is owed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RedisStore } from "../../src/store/redis/index.ts";
import { createRedisStore } from "../../src/store/redis/index.ts";
import type { Store } from "../../src/store/store.ts";
import type { TopicOptions } from "../../src/topic/topic.ts";
import { freshDirectory } from "../journal/support.ts";
import { dropSchema, openStore } from "../support/postgres.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { freshPrefix } from "../support/redis-store.ts";
import { type Fragile, fragile, ladderScene, TOPIC } from "./support.ts";

const LATER: TopicOptions = { retry: { attemptsMax: 5, baseMs: 3_600_000, maxMs: 3_600_000 } };

let redis: RedisServer;
const schemas: string[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  for (const schema of schemas) await dropSchema(schema);
  await redis.stop();
});

interface Scene extends Awaited<ReturnType<typeof ladderScene>> {
  readonly primary: Fragile;
  /** What PostgreSQL has, also while it counts as away. */
  readonly postgres: Store;
  readonly secondary: RedisStore;
}

async function scene(
  receiver: Receiver,
  how: TopicOptions = LATER,
  rest: { journal?: { directory: string } } = {},
): Promise<Scene> {
  const postgres = await openStore();
  schemas.push(postgres.schema);
  const primary = fragile(true, postgres);
  const secondary = createRedisStore({ redis: redis.url, prefix: freshPrefix(), connect: { timeoutMs: 1_000 } });
  const made = await ladderScene({ url: receiver.url, topic: how, store: primary.store, secondary, ...rest });
  // The look at what may have been left below is over: it would be cut off by the outage that follows.
  await made.mg.ladder.drain();
  return { ...made, primary, postgres, secondary };
}

const pending = async (store: Store) => (await store.list({ limit: 100, status: "pending" })).data;

describe("down and up", () => {
  it("Redis takes it, PostgreSQL gets it back with its direct try and its wait, and the receiver sees one effect", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const { mg, primary, postgres, secondary, of } = await scene(receiver);
    primary.mode = "refuses";
    const results = [];
    for (let n = 0; n < 30; n++)
      results.push(await mg.deliver(TOPIC, { n }, { key: `k${n}`, tenantId: `t${n % 3}`, priority: n % 2 }));
    for (const one of results) expect(one).toMatchObject({ kind: "queued", stored: "secondary", survives: "process-crash" });
    expect(await pending(postgres)).toEqual([]);
    // One of them may be trying whether the receiver is back.
    await expect.poll(async () => (await pending(secondary)).length, { timeout: 5_000 }).toBe(30);

    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ conflicts: 0, whole: true });
    const up = await pending(postgres);
    expect(new Set(up.map(({ id }) => id))).toEqual(new Set(results.map(({ id }) => id)));
    for (const { tenantId, payload, priority, attempts, nextAttemptAt, lastCode } of up) {
      const { n } = JSON.parse(payload) as { n: number };
      // After five failures the breaker is open, in this process alone, and there is no direct try but its probes.
      expect([tenantId, priority, attempts]).toEqual([`t${n % 3}`, n % 2, 0]);
      expect(n < 5 ? ["http_503"] : ["http_503", null]).toContain(lastCode);
      if (n < 5) expect((nextAttemptAt?.getTime() ?? 0) - Date.now()).toBeGreaterThan(1_000_000);
    }
    // One probe each five seconds; the machine may be slow.
    expect(up.filter(({ lastCode }) => lastCode === null).length).toBeGreaterThan(15);
    expect(await pending(secondary)).toEqual([]);
    expect(of("drained").reduce((sum, { moved }) => sum + moved, 0)).toBe(30);
    expect(await mg.ladder.drain()).toMatchObject({ moved: 0 });
    await mg.close();
  });

  it("what was committed above although its answer was lost is one message there, whatever became of it", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const { mg, primary, postgres, secondary } = await scene(receiver);
    primary.mode = "late";
    const first = await mg.deliver(TOPIC, 1, { key: "a" });
    expect(first).toMatchObject({ stored: "secondary" });
    const second = await mg.deliver(TOPIC, 2, { key: "b" });
    primary.mode = "refuses";
    // One of them was settled meanwhile.
    await postgres.intervene({ id: second.id, action: "discard", actor: "me", reason: "no longer owed" });
    const before = await postgres.get(second.id);
    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ conflicts: 0, whole: true });
    expect(await pending(postgres)).toMatchObject([{ id: first.id, key: "a" }]);
    expect(await postgres.get(second.id)).toEqual(before);
    expect(await pending(secondary)).toEqual([]);
    await mg.close();
  });

  it("DF-17: a contradiction stays in Redis as an open dead letter; the first stands", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const { mg, primary, postgres, secondary, of } = await scene(receiver);
    const first = await mg.deliver(TOPIC, { cost: 1 }, { key: "k" });
    primary.mode = "refuses";
    const second = await mg.deliver(TOPIC, { cost: 2 }, { key: "k" });
    primary.mode = "up";
    expect(await mg.ladder.drain()).toMatchObject({ conflicts: 1 });
    expect(await mg.ladder.drain()).toMatchObject({ conflicts: 0 });
    expect(of("quarantined")).toMatchObject([{ id: second.id, rung: "secondary", key: "k" }]);
    expect(await secondary.get(second.id)).toMatchObject({ status: "dead", resolution: "open", lastCode: "key_conflict" });
    expect((await postgres.get(first.id))?.payload).toBe('{"cost":1}');
    await mg.close();
  });

  it("a rejection becomes a dead letter above, and is resolved below", async () => {
    await using receiver = await startReceiver({ status: 422 });
    const { mg, primary, postgres, secondary } = await scene(receiver);
    primary.mode = "refuses";
    const { id } = await mg.deliver(TOPIC, 1, { key: "k" });
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await postgres.get(id)).toMatchObject({ status: "dead", resolution: "open", attempts: 0, lastCode: "http_422" });
    expect(await secondary.get(id)).toMatchObject({ status: "dead", resolution: "resolved" });
    expect((await secondary.history(id)).provenance).toMatchObject([{ actor: "ladder", action: "resolve" }]);
    await mg.close();
  });

  it("CON-8: attempts that were made in Redis are counted in PostgreSQL, the last one ends it if it did there", async () => {
    await using receiver = await startReceiver();
    receiver.default(({ key }) => ({ status: key === "refused" ? 422 : 503 }));
    const { mg, primary, postgres, secondary } = await scene(receiver);
    primary.mode = "refuses";
    const [tried, refused] = [
      await mg.deliver(TOPIC, 1, { key: "tried", storeFirst: true }),
      await mg.deliver(TOPIC, 2, { key: "refused", storeFirst: true }),
    ];
    expect(tried).toMatchObject({ kind: "queued", stored: "secondary", tries: 1 });
    expect(refused).toMatchObject({ kind: "dead", stored: "secondary", tries: 1 });
    expect(await secondary.get(tried.id)).toMatchObject({ status: "pending", attempts: 1 });
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await postgres.get(tried.id)).toMatchObject({ status: "pending", attempts: 1, lastCode: "http_503" });
    expect((await postgres.history(tried.id)).attempts).toMatchObject([{ attempt: 1, counted: true, code: "http_503" }]);
    expect(await postgres.get(refused.id)).toMatchObject({ status: "dead", resolution: "open", attempts: 1 });
    expect(await pending(secondary)).toEqual([]);
    await mg.close();
  });

  it("DF-12: while PostgreSQL is away, what Redis took is attempted there, counted there, and delivered once", async () => {
    await using receiver = await startReceiver();
    receiver.script("k", [{ status: 503 }, { status: 503 }]);
    const { mg, primary, postgres, secondary, of } = await scene(receiver, {});
    primary.mode = "refuses";
    const { id } = await mg.deliver(TOPIC, 1, { key: "k" });
    await expect.poll(async () => (await secondary.get(id))?.status, { timeout: 10_000 }).toBe("delivered");
    expect(receiver.of("k").map(({ attempt }) => attempt)).toEqual([0, 1, 2]);
    await expect
      .poll(() => of("attempt"))
      .toMatchObject([
        { attempt: 1, outcome: "retry" },
        { attempt: 2, status: "delivered" },
      ]);
    primary.mode = "up";
    await mg.ladder.drain();
    expect(await postgres.get(id)).toBeNull();
    await mg.close();
  });

  it("messages with an ordering key go up in their order", async () => {
    await using receiver = await startReceiver();
    const { mg, primary } = await scene(receiver, {});
    primary.mode = "refuses";
    for (let n = 0; n < 8; n++) expect(await mg.deliver(TOPIC, n, { orderingKey: "o" })).toMatchObject({ stored: "secondary" });
    primary.mode = "up";
    await mg.ladder.drain();
    mg.work();
    await expect
      .poll(() => receiver.arrivals.map(({ body }) => Number(body)), { timeout: 10_000 })
      .toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    await mg.close();
  });

  it("a worker above delivers what came from Redis, once", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const { mg, primary, postgres } = await scene(receiver, { retry: { attemptsMax: 5, baseMs: 2_000, maxMs: 2_000 } });
    primary.mode = "refuses";
    const { id } = await mg.deliver(TOPIC, 1, { key: "k" });
    receiver.default({ status: 200 });
    primary.mode = "up";
    await mg.ladder.drain();
    mg.work();
    await expect.poll(async () => (await postgres.get(id))?.status, { timeout: 10_000 }).toBe("delivered");
    expect(receiver.effects).toEqual(new Set(["k"]));
    await mg.close();
  });
});

describe("Redis goes away, too", () => {
  it("killed with -9 it has what it took when it is back; meanwhile the journal takes the rest, and all of it goes up", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const journal = { directory: await freshDirectory() };
    const { mg, primary, postgres, secondary, of } = await scene(receiver, LATER, { journal });
    primary.mode = "refuses";
    const inRedis = await mg.deliver(TOPIC, 1, { key: "a" });
    expect(inRedis).toMatchObject({ stored: "secondary" });
    await redis.stop("SIGKILL");
    const inJournal = await mg.deliver(TOPIC, 2, { key: "b", budgetMs: 5_000 });
    expect(inJournal).toMatchObject({ stored: "journal", survives: "power-loss" });
    await expect.poll(() => of("store_error").some(({ store }) => store === "secondary"), { timeout: 10_000 }).toBe(true);
    primary.mode = "up";
    await expect.poll(async () => (await postgres.get(inJournal.id))?.status, { timeout: 10_000 }).toBe("pending");
    expect(await postgres.get(inRedis.id)).toBeNull();
    await redis.start();
    await expect.poll(async () => (await postgres.get(inRedis.id))?.status, { timeout: 20_000 }).toBe("pending");
    await expect.poll(() => pending(secondary)).toEqual([]);
    await mg.close();
  });

  it("a key whose head another process is moving is still there: nothing of it overtakes", async () => {
    await using receiver = await startReceiver();
    const { mg, primary, secondary } = await scene(receiver, {});
    primary.mode = "refuses";
    for (const n of [0, 1]) await mg.deliver(TOPIC, n, { key: `k${n}`, orderingKey: "o" });
    // As another process would: the head is claimed, and not yet in the primary store.
    const [lane] = (await secondary.lanes()).filter(({ ordered }) => ordered);
    const [head] = await secondary.claim({ owner: "other", leaseMs: 60_000, lanes: [{ lane: lane?.lane as string, limit: 10 }] });
    expect(head).toMatchObject({ key: "k0" });
    primary.mode = "up";
    await expect(mg.enqueue(TOPIC, 2, { key: "k2", orderingKey: "o" })).rejects.toMatchObject({ code: "store_unavailable" });
    await secondary.settle([
      { id: head?.id as string, claim: head?.claim as never, attempt: 1, durationMs: null, settlement: { kind: "release" } },
    ]);
    await mg.ladder.drain();
    expect(await mg.enqueue(TOPIC, 2, { key: "k2", orderingKey: "o" })).toMatchObject({ inserted: true });
    mg.work();
    await expect.poll(() => receiver.arrivals.map(({ key }) => key), { timeout: 15_000 }).toEqual(["k0", "k1", "k2"]);
    await mg.close();
  });
});
