/**
 * The client on the Redis port, with a real server that is killed, frozen and brought back: nothing is lost, two instances share
 * the work, and what health says is true (FIN-1, FIN-46…49, FIN-72, FIN-73).
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { billingOfCounts, lookAtStore } from "../../src/presets/settlement/health.ts";
import { createRedisDLQStore } from "../../src/store/redis/dlq-port/redis-dlq-store.ts";
import { fromIoredis } from "../../src/store/redis/port.ts";
import { createRedisStore } from "../../src/store/redis/redis-store.ts";
import { until } from "../support/processes.ts";
import { type Billing, startBilling } from "./billing.ts";
import { type RedisServer, startRedis } from "./redis.ts";
import { request, sceneOf, TEN_MINUTES } from "./scene.ts";

let redis: RedisServer;
let billing: Billing;
let raw: Redis;
beforeAll(async () => {
  [redis, billing] = await Promise.all([startRedis(), startBilling()]);
  raw = new Redis({ host: "127.0.0.1", port: redis.port });
  raw.on("error", () => undefined);
});
afterAll(async () => {
  raw.disconnect();
  await billing[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});
beforeEach(async () => {
  billing.answer("honest");
  await raw.flushall();
});

let aheadMs = 0;
const storeOf = (options: Parameters<typeof createRedisDLQStore>[1] = {}) =>
  createRedisDLQStore(redis.connect(), { now: () => Date.now() + aheadMs, ...options });

describe("durability", () => {
  it("FIN-1, DF-35: entries outlive their client and are replayed by the next one", async () => {
    billing.answer({ status: 503 });
    const given = [request(), request()];
    {
      await using first = sceneOf(billing, { dlqStore: storeOf() });
      await until("the check of persistence", () => first.client.isAofVerified());
      for (const one of given) {
        expect(await first.client.finalize(one)).toMatchObject({ status: "dlq", stored: "redis", survives: "power-loss" });
      }
      expect(first.kept.of("DLQ: entry created")).toMatchObject([{ level: "warn", store: "redis", attempt: 1 }, {}]);
      await until("a sample", async () => (await first.client.health()).dlq_size === 2);
      expect(await first.client.health()).toMatchObject({
        dlq_size: 2,
        dlq_store_type: "redis",
        dlq_durable: true,
        dlq_aof_verified: true,
        dlq_persistence: "verified",
        ready_for_billing: true,
      });
    }
    billing.answer("honest");
    aheadMs += TEN_MINUTES;
    await using second = sceneOf(billing, { dlqStore: storeOf() });
    expect(await second.client.replayDeadLetters()).toMatchObject({ replayed: 2, succeeded: 2 });
    expect(await second.client.getDLQSize()).toBe(0);
  });

  it("CON-36: without an AOF it is not durable, and not ready for billing", async () => {
    await raw.config("SET", "appendonly", "no");
    try {
      await using scene = sceneOf(billing, { dlqStore: storeOf() });
      await scene.client.replayDeadLetters();
      expect(await scene.client.health()).toMatchObject({
        dlq_durable: false,
        dlq_aof_verified: false,
        ready_for_billing: false,
      });
      expect([scene.client.isDurable(), scene.client.isAofVerified()]).toEqual([false, false]);
      expect(scene.kept.of("not ready for billing")).toHaveLength(1);
    } finally {
      await raw.config("SET", "appendonly", "yes");
      // Redis writes a new file first; until it is done a kill would lose what came before.
      await until(
        "the new AOF",
        async () => /aof_rewrite_(?:in_progress|scheduled):1/.test(await raw.info("persistence")) === false,
      );
    }
  });

  it("DF-11, DF-12: Redis killed: kept in memory and in the log, replayed from there, moved up when it is back", async () => {
    await using scene = sceneOf(billing, { dlqStore: storeOf() });
    billing.answer({ status: 503 });
    const before = request();
    await scene.client.finalize(before);
    await redis.kill();
    const during = [request(), request({ actual_cost_micro: "x" })];
    for (const one of during) {
      expect(await scene.client.finalize(one)).toMatchObject({ status: "dlq", stored: "memory", survives: "nothing" });
    }
    expect(scene.kept.of("degraded")).toMatchObject([{ from: "redis", to: "memory" }, {}]);
    expect(scene.kept.of("not durable; settle").map(({ entry }) => entry)).toMatchObject([during[0], { actual_cost_micro: "x" }]);
    expect(scene.client.isDurable()).toBe(false);
    expect(await scene.client.health()).toMatchObject({ dlq_durable: false, ready_for_billing: false });
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 0 });

    await redis.restart();
    await until("moved up", async () => {
      await scene.client.replayDeadLetters();
      return scene.client.isDurable();
    });
    const store = storeOf();
    expect(await store.get(before.reservation_id)).toMatchObject({ attempt_count: 1 });
    expect(await store.get((during[0] as typeof before).reservation_id)).toMatchObject(during[0] as typeof before);
    expect(await store.listTerminal()).toMatchObject([{ actual_cost_micro: "x" }]);
    billing.answer("honest");
    aheadMs += TEN_MINUTES;
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 2, succeeded: 2 });
    expect(await scene.client.getDLQSize()).toBe(0);
  });

  it("DF-12: what waits in memory is replayed there while Redis stays away", async () => {
    await using scene = sceneOf(billing, { dlqStore: storeOf() });
    billing.answer({ status: 503 });
    await redis.kill();
    const given = request();
    await scene.client.finalize(given);
    billing.answer("honest");
    scene.clock.move(TEN_MINUTES);
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 1, succeeded: 1 });
    expect(billing.effectsOf(given.reservation_id)).toBe(1);
    await redis.restart();
  });

  it("CON-8: what moves up never overwrites what Redis knows: attempts, first cost, terminal record", async () => {
    const store = storeOf();
    const [counted, contradicted, ended] = [request(), request(), request()] as const;
    await using scene = sceneOf(billing, { dlqStore: store });
    billing.answer({ status: 503 });
    const kept = { reason: "first", response_status: null };
    await store.put({ ...counted, ...kept, attempt_count: 4 }, { delayMs: 3_600_000 });
    await store.put({ ...contradicted, ...kept, attempt_count: 1, actual_cost_micro: "1" }, { delayMs: 3_600_000 });
    await store.put({ ...ended, ...kept, attempt_count: 6 }, { terminal: "ended" });
    redis.freeze();
    for (const one of [counted, contradicted, ended])
      expect(await scene.client.finalize(one)).toMatchObject({ stored: "memory" });
    redis.thaw();
    await until("moved up", async () => {
      await scene.client.replayDeadLetters();
      return scene.kept.of("moved out of memory").length > 0 && scene.client.isDurable();
    });
    expect(await store.get(counted.reservation_id)).toMatchObject({ attempt_count: 4, reason: "first" });
    expect(await store.get(contradicted.reservation_id)).toMatchObject({ actual_cost_micro: "1" });
    expect(await store.getTerminal(ended.reservation_id)).toMatchObject({ terminal_reason: "ended", attempt_count: 6 });
    expect((await store.listQuarantine()).map(({ kind }) => kind)).toContain("conflict");
  });
});

describe("N10", () => {
  it("an attestation is shown apart, and is no word of the server's", async () => {
    await raw.call("ACL", "SETUSER", "blind", "on", "nopass", "~*", "&*", "+@all", "-config", "-info");
    const blind = new Redis({ host: "127.0.0.1", port: redis.port, username: "blind", password: "x", lazyConnect: true });
    const port = fromIoredis(blind);
    await using scene = sceneOf(billing, { dlqStore: createRedisDLQStore(port, { attestedBy: "ada" }) });
    await scene.client.ready();
    await until("a sample", async () => (await scene.client.health()).dlq_size === 0);
    expect(await scene.client.health()).toMatchObject({
      dlq_aof_verified: false,
      dlq_attested: "ada",
      dlq_persistence: "verified",
    });
    expect(scene.client.isAofVerified()).toBe(false);
    await scene.client.close();
    await port.close();
  });

  it("a payload whose text was changed is named, before it is due and when it dies", async () => {
    const store = storeOf();
    billing.answer({ status: 503 });
    const [bad, good] = [request(), request()];
    {
      await using scene = sceneOf(billing, { dlqStore: store });
      for (const one of [bad, good]) await scene.client.finalize(one);
    }
    const { data } = await store.store.list({ topic: "billing/finalize", status: "pending", limit: 10 });
    const { id } = data.find(({ key }) => key === bad.reservation_id) ?? { id: "" };
    await raw.hset(`{finn:hounfour:dlq}:m:${id}`, "p", '{"reservation_id":');
    await using scene = sceneOf(billing, { dlqStore: store });
    await scene.client.ready();
    expect(scene.kept.of("unreadable")).toMatchObject([{ kind: "corrupt", reservation_id: bad.reservation_id }]);
    await until("a sample", async () => (await scene.client.health()).dlq_unreadable === 1);
    expect(await scene.client.health()).toMatchObject({ ready_for_billing: false });
    aheadMs += TEN_MINUTES;
    await scene.client.replayDeadLetters();
    expect(scene.kept.of("terminal drop")).toMatchObject([{ reservation_id: bad.reservation_id }]);
    expect(await store.getTerminal(bad.reservation_id)).toMatchObject({ reservation_id: bad.reservation_id, resolution: "open" });
  });

  it("the block that a server makes of its store says of appendfsync what the client says", async () => {
    const store = createRedisStore({ redis: redis.connect() });
    await store.open();
    expect(await lookAtStore(store)).toMatchObject({ state: "verified" });
    await raw.config("SET", "appendfsync", "no");
    try {
      const looked = await lookAtStore(store);
      expect(billingOfCounts([], store.traits, true, looked)).toMatchObject({
        dlq_persistence: "failed",
        dlq_aof_verified: false,
        ready_for_billing: false,
      });
    } finally {
      await raw.config("SET", "appendfsync", "always");
      await store.close();
    }
  });

  it("payloads that are gone are named, whether they are due or not", async () => {
    const alarms: string[] = [];
    const store = storeOf({ onAlarm: ({ kind, reservation_id }) => void alarms.push(`${kind} ${reservation_id}`) });
    billing.answer({ status: 503 });
    const given = [request(), request()] as const;
    {
      await using scene = sceneOf(billing, { dlqStore: store });
      for (const one of given) await scene.client.finalize(one);
    }
    for (const { id } of (await store.store.list({ topic: "billing/finalize", limit: 10 })).data)
      await raw.del(`{finn:hounfour:dlq}:m:${id}`);
    await using scene = sceneOf(billing, { dlqStore: store });
    await scene.client.ready();
    expect(
      scene.kept
        .of("unreadable")
        .map(({ kind, reservation_id }) => `${kind} ${reservation_id}`)
        .toSorted(),
    ).toEqual(given.map(({ reservation_id }) => `orphan ${reservation_id}`));
    expect(alarms.toSorted()).toEqual(given.map(({ reservation_id }) => `orphan ${reservation_id}`));
    await until("a sample", async () => (await scene.client.health()).dlq_unreadable === 2);
    expect(await scene.client.health()).toMatchObject({ ready_for_billing: false });
  });
});

describe("replays", () => {
  it("DF-21: a corrupt entry is quarantined and the others are settled", async () => {
    const store = storeOf();
    await using scene = sceneOf(billing, { dlqStore: store });
    billing.answer({ status: 503 });
    const given = [request(), request(), request()];
    for (const one of given) await scene.client.finalize(one);
    const bad = (given[1] as (typeof given)[0]).reservation_id;
    const { data } = await store.store.list({ topic: "billing/finalize", key: bad, limit: 1 });
    const key = `{finn:hounfour:dlq}:m:${data[0]?.id}`;
    await raw.del(key);
    await raw.set(key, "{ not what we wrote");
    billing.answer("honest");
    aheadMs += TEN_MINUTES;
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 2, succeeded: 2 });
    expect((await store.listQuarantine()).map(({ reservation_id }) => reservation_id)).toEqual([bad]);
    expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 0 });
    // N10: it is named in a line, counted, and nobody says that all is well.
    expect(scene.kept.of("unreadable")).toMatchObject([{ level: "error", kind: "corrupt", reservation_id: bad }]);
    await until("a sample", async () => (await scene.client.health()).dlq_unreadable === 1);
    expect(await scene.client.health()).toMatchObject({ dlq_durable: true, dlq_aof_verified: true, ready_for_billing: false });
  });

  it("two instances replay the same 1,000 entries: each once", async () => {
    const stores = [storeOf({ batchLimit: 100 }), storeOf({ batchLimit: 100 })] as const;
    const given = Array.from({ length: 1_000 }, () => request());
    const kept = { reason: "test", response_status: null, attempt_count: 1 };
    await Promise.all(given.map((one) => stores[0].put({ ...one, ...kept }, { delayMs: 0 })));
    // A hundred at once on a busy machine: none of them may be late, for a late one would be sent again.
    const scenes = stores.map((dlqStore) => sceneOf(billing, { dlqStore, timeoutMs: 20_000 }));
    const sums = await Promise.all(
      scenes.map(async ({ client }) => {
        let replayed = 0;
        while ((await client.getDLQSize()) > 0) replayed += (await client.replayDeadLetters()).replayed;
        return replayed;
      }),
    );
    for (const scene of scenes) await scene.client.close();
    expect(sums.reduce((a, b) => a + b)).toBe(1_000);
    expect(given.filter(({ reservation_id }) => billing.callsOf(reservation_id).length !== 1)).toEqual([]);
    // Both did some of it: neither waited for the other.
    expect(Math.min(...sums)).toBeGreaterThan(0);
  });

  it("FIN-33: a claim is given back after every failure, so the next replay needs no lease to end", async () => {
    const store = storeOf();
    await using scene = sceneOf(billing, { dlqStore: store });
    billing.answer({ status: 500 });
    const given = request();
    await scene.client.finalize(given);
    for (let i = 2; i <= 4; i++) {
      aheadMs += TEN_MINUTES;
      expect(await scene.client.replayDeadLetters()).toMatchObject({ replayed: 1, failed: 1 });
      expect(await store.get(given.reservation_id)).toMatchObject({ attempt_count: i });
      expect((await store.gauges()).claimed).toBe(0);
    }
  });
});
