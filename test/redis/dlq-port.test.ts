/** The seeds' port: the shared suite on memory and on Redis through both clients, then what only Redis can do wrong. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MakegoodError } from "../../src/message/errors.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { DLQAlarm } from "../../src/store/redis/dlq-port/dlq-store.ts";
import { createMemoryDLQStore } from "../../src/store/redis/dlq-port/port.ts";
import { createRedisDLQStore, type RedisDLQStoreOptions } from "../../src/store/redis/dlq-port/redis-dlq-store.ts";
import { fromIoredis, fromNodeRedis, type RedisPort } from "../../src/store/redis/port.ts";
import { DURABLE, type RedisServer, startRedis } from "../support/redis-server.ts";
import { dlqSuite, owed } from "./dlq-port-suite.ts";

const sorted = (texts: readonly string[]): string[] => [...texts].sort((a, b) => (a < b ? -1 : 1));
const START = Date.UTC(2026, 0, 1);

dlqSuite("memory", async (options = {}) => {
  let ms = START;
  const alarms: DLQAlarm[] = [];
  const clock: Clock = { wallMs: () => ms, monotonicMs: () => ms, after: () => ({ cancel() {} }) };
  const store = createMemoryDLQStore({ ...options, clock, onAlarm: (alarm) => alarms.push(alarm) });
  return {
    store,
    other: store,
    alarms,
    nowMs: () => ms,
    advance: (by) => {
      ms += by;
    },
  };
});

describe("on Redis", () => {
  let server: RedisServer;
  const ports: RedisPort[] = [];
  const made: Record<"node-redis" | "ioredis", () => RedisPort> = {
    "node-redis": () => fromNodeRedis(createClient({ url: server.url })),
    ioredis: () => fromIoredis(new Redis(server.url, { lazyConnect: true })),
  };
  const port = (kind: "node-redis" | "ioredis" = "node-redis"): RedisPort => {
    const one = made[kind]();
    ports.push(one);
    return one;
  };

  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    for (const one of ports) await one.close();
    await server.stop();
  });

  for (const kind of ["node-redis", "ioredis"] as const) {
    let one: RedisPort;
    let two: RedisPort;
    dlqSuite(`Redis through ${kind}`, async (options = {}) => {
      one ??= port(kind);
      two ??= port(kind);
      await one.send(null, ["FLUSHALL"]);
      let ms = START;
      const alarms: DLQAlarm[] = [];
      const how = { ...options, now: () => ms, onAlarm: (alarm: DLQAlarm) => void alarms.push(alarm) };
      const [store, other] = [createRedisDLQStore(one, how), createRedisDLQStore(two, how)];
      return {
        store,
        other,
        alarms,
        nowMs: () => ms,
        advance: (by) => {
          ms += by;
        },
      };
    });
  }

  describe("what only Redis can do wrong", () => {
    let redis: RedisPort;
    let alarms: DLQAlarm[];
    const send = (...args: string[]) => redis.send(null, args);
    const open = (options: RedisDLQStoreOptions = {}) =>
      createRedisDLQStore(redis, { onAlarm: (alarm) => alarms.push(alarm), ...options });

    beforeAll(() => {
      redis = port();
    });
    beforeEach(async () => {
      alarms = [];
      await send("FLUSHALL");
    });

    const P = "{finn:hounfour:dlq}";
    const idOf = async (reservationId: string): Promise<string> => {
      const { data } = await open().store.list({ topic: "billing/finalize", key: reservationId, limit: 1 });
      return data[0]?.id as string;
    };

    it("DF-1, DF-2: nothing unsettled carries a time to live, and a lost payload is an alarm and a note, never silence", async () => {
      const store = open();
      await store.put(owed("r-1"));
      await store.put(owed("r-2"));
      const claim = await store.claimForReplay("r-2");
      await store.terminalDrop("r-2", claim?.token as string, "exhausted");
      for (const key of (await send("KEYS", "*")) as string[]) expect([key, await send("PTTL", key)]).toEqual([key, -1]);
      await send("DEL", `${P}:m:${await idOf("r-1")}`);
      expect(await store.getReady()).toEqual([]);
      expect(alarms).toMatchObject([{ kind: "orphan", reservation_id: "r-1" }]);
      expect(await store.listQuarantine()).toMatchObject([{ kind: "orphan", reservation_id: "r-1" }]);
      expect(await store.gauges()).toMatchObject({ due: 0, quarantined: 1 });
    });

    it("DF-31: repair judges and removes in one script: an entry that came back meanwhile is left alone", async () => {
      const store = open();
      await store.put(owed("r-1"));
      await send("DEL", `${P}:m:${await idOf("r-1")}`);
      // Another instance puts the entry again before the repair looks: it is another message under the same reservation.
      expect(await open().put(owed("r-1", { trace_id: "again" }))).toBe("created");
      expect(await store.getReady()).toMatchObject([{ reservation_id: "r-1", trace_id: "again" }]);
      expect(await store.getReady()).toHaveLength(1);
      expect(await store.count()).toBe(1);
    });

    it("DF-32: payloads that no index leads to, and indexes that lead nowhere, are found and mended", async () => {
      const store = open();
      for (const id of ["fine", "unscheduled", "lost", "gone"]) await store.put(owed(id));
      const [unscheduled, lost, gone] = [await idOf("unscheduled"), await idOf("lost"), await idOf("gone")];
      const lane = `${P}:l:${(await store.store.lanes())[0]?.lane}`;
      await send("ZREM", lane, unscheduled, lost);
      await send("ZREM", `${P}:s:p:billing/finalize`, lost);
      await send("DEL", `${P}:m:${gone}`);
      expect(await store.reconcile()).toMatchObject({ checked: 3, quarantined: 1 });
      expect(alarms).toMatchObject([{ kind: "orphan", reservation_id: "gone" }]);
      const ready = (await store.getReady()).map(({ reservation_id }) => reservation_id);
      expect(sorted(ready)).toEqual(["fine", "lost", "unscheduled"]);
      expect(await store.claimForReplay("unscheduled")).not.toBeNull();
      expect(await store.reconcile()).toEqual({ checked: 3, mended: 0, quarantined: 0 });
    });

    it("DF-21: corrupt entries are quarantined as they are, and the rest of the batch goes on", async () => {
      const store = open();
      for (const id of ["a", "json", "half", "number", "z"]) await store.put(owed(id));
      const [json, half, number] = [await idOf("json"), await idOf("half"), await idOf("number")];
      await send("DEL", `${P}:m:${json}`);
      await send("SET", `${P}:m:${json}`, '{"reservation_id":');
      await send("HDEL", `${P}:m:${half}`, "p");
      await send("HSET", `${P}:m:${number}`, "n", "many");
      await store.reconcile();
      expect((await store.getReady()).map(({ reservation_id }) => reservation_id)).toEqual(["a", "z"]);
      expect(sorted(alarms.map(({ kind, reservation_id }) => `${kind} ${reservation_id}`))).toEqual([
        "corrupt half",
        "corrupt json",
        "corrupt number",
      ]);
      const kept = await store.listQuarantine();
      expect(kept.find(({ reservation_id }) => reservation_id === "json")?.fields).toEqual({ value: '{"reservation_id":' });
      expect(await store.count()).toBe(2);
    });

    it("DF-21: a put over an entry whose payload is gone is kept, and the loss is told", async () => {
      const store = open();
      await store.put(owed("r-1"));
      await send("DEL", `${P}:m:${await idOf("r-1")}`);
      expect(await open().put(owed("r-1"))).toBe("created");
      expect(await store.get("r-1")).toMatchObject({ reservation_id: "r-1" });
      expect(await store.reconcile()).toMatchObject({ quarantined: 1 });
      expect(await store.listQuarantine()).toMatchObject([{ kind: "orphan" }]);
    });

    it("fails whole when an index is a key of another type, and works once it is gone", async () => {
      const store = open();
      await store.put(owed("r-1"));
      await send("SET", `${P}:leased`, "planted");
      await expect(store.claimForReplay("r-1")).rejects.toMatchObject({ code: "store_unavailable" });
      expect(await store.get("r-1")).toMatchObject({ attempt_count: 1 });
      await send("DEL", `${P}:leased`);
      expect(await store.claimForReplay("r-1")).not.toBeNull();
    });

    it("FIN-25: more lost payloads than a batch stand in front of what is due: each is named, and the rest goes on", async () => {
      const store = open();
      for (let i = 0; i < 3; i++) await store.put(owed(`fine-${i}`), { delayMs: i });
      const gone: string[] = [];
      for (let i = 0; i < 60; i++) {
        // They were due a minute before the others: their payloads were deleted, not the places where they wait.
        await store.put(owed(`gone-${i}`));
        const id = await idOf(`gone-${i}`);
        await send("ZADD", `${P}:l:${(await store.store.lanes())[0]?.lane}`, String(START), id);
        await send("DEL", `${P}:m:${id}`);
        gone.push(`orphan gone-${i}`);
      }
      expect((await store.getReady()).map(({ reservation_id }) => reservation_id)).toEqual(["fine-0", "fine-1", "fine-2"]);
      expect(sorted(alarms.map(({ kind, reservation_id }) => `${kind} ${reservation_id}`))).toEqual(sorted(gone));
      expect(await store.count()).toBe(3);
      expect(await store.gauges()).toMatchObject({ due: 3, waiting: 0, quarantined: 60 });
    });

    it("DF-21: a due entry whose text another client has changed is named, once", async () => {
      const store = open();
      for (const id of ["good", "bad"]) await store.put(owed(id));
      await send("HSET", `${P}:m:${await idOf("bad")}`, "p", '{"reservation_id":');
      for (let i = 0; i < 2; i++) await store.getReady();
      expect(alarms).toMatchObject([{ kind: "corrupt", reservation_id: "bad" }]);
      expect(await store.listQuarantine()).toMatchObject([{ kind: "corrupt", reservation_id: "bad" }]);
    });

    it("DF-22: fifty due entries cost three commands, however many wait", async () => {
      const store = open();
      for (let i = 0; i < 1_100; i++) await store.put(owed(`r-${i}`));
      const commands: unknown[] = [];
      const counting: RedisPort = {
        ...redis,
        send(key, args, options) {
          commands.push(args[0]);
          return redis.send(key, args, options);
        },
      };
      const counted = createRedisDLQStore(counting);
      await counted.getReady();
      commands.length = 0;
      expect(await counted.getReady()).toHaveLength(50);
      // Where something is due, a page of it, what is quarantined.
      expect(commands).toEqual(["EVALSHA", "EVALSHA", "ZRANGE"]);
    });

    it("DF-25, FIN-17: every key stands under the seeds' prefix, in one hash tag, whether it is given with braces or without", async () => {
      for (const prefix of [undefined, "finn:hounfour:dlq", P]) {
        await send("FLUSHALL");
        const store = open({ prefix });
        await store.put(owed("{other}:r-1"));
        await store.claimForReplay("{other}:r-1");
        await store.put(owed("r-2"), { terminal: "http_422" });
        await store.put(owed("r-2", { tenant_id: "x" }));
        for (const key of (await send("KEYS", "*")) as string[]) expect(key.startsWith(`${P}:`)).toBe(true);
        expect(await send("ZCARD", `${P}:s:i:billing/finalize`)).toBe(1);
      }
    });

    it("DF-26: without a given time the server's clock decides", async () => {
      const store = open();
      const [seconds] = (await send("TIME")) as string[];
      await store.put(owed("r-1"), { delayMs: 60_000 });
      const entry = await store.get("r-1");
      const skew = Date.parse(entry?.created_at as string) - Number(seconds) * 1_000;
      expect(skew).toBeGreaterThanOrEqual(0);
      expect(skew).toBeLessThan(10_000);
      expect(Date.parse(entry?.next_attempt_at as string) - Date.parse(entry?.created_at as string)).toBe(60_000);
    });

    it("a put whose answer is lost is unknown, and its repeat finds the first", async () => {
      const mute: RedisPort = {
        ...redis,
        async send(key, args, options) {
          await redis.send(key, args, options);
          throw new MakegoodError("outcome_unknown", "no answer");
        },
      };
      const store = open();
      await store.put(owed("other"));
      const deaf = createRedisDLQStore(mute);
      await expect(deaf.put(owed("r-1"))).rejects.toMatchObject({ code: "outcome_unknown" });
      await expect(deaf.count()).rejects.toMatchObject({ code: "store_unavailable" });
      expect(deaf.durable).toBe(false);
      expect(await store.put(owed("r-1"))).toBe("exists");
    });

    it("goes on after SCRIPT FLUSH", async () => {
      const store = open();
      await store.put(owed("r-1"));
      await send("SCRIPT", "FLUSH");
      expect(await store.put(owed("r-1"))).toBe("exists");
    });

    it("DF-9: persistence is verified by what the server says", async () => {
      const store = open();
      expect(store.durable).toBe(false);
      expect(await store.validatePersistence()).toMatchObject({
        state: "verified",
        checked: { appendonly: "yes", appendfsync: "everysec", "maxmemory-policy": "noeviction" },
      });
      expect(store.durable).toBe(true);
      for (const [name, bad, good] of [
        ["maxmemory-policy", "allkeys-lru", "noeviction"],
        ["appendfsync", "no", "everysec"],
        ["appendonly", "no", "yes"],
      ] as const) {
        await send("CONFIG", "SET", name, bad);
        expect(await store.validatePersistence()).toMatchObject({ state: "failed", reason: expect.stringContaining(name) });
        expect(await open({ attestedBy: "ada" }).validatePersistence()).toMatchObject({ state: "failed" });
        expect(store.durable).toBe(false);
        await send("CONFIG", "SET", name, good);
      }
    });

    it("DF-9: where CONFIG is refused INFO answers; where both are, it is unknown until a person attests", async () => {
      await send("ACL", "SETUSER", "noconfig", "on", "nopass", "~*", "&*", "+@all", "-config");
      await send("ACL", "SETUSER", "blind", "on", "nopass", "~*", "&*", "+@all", "-config", "-info");
      const as = (username: string): RedisPort => {
        const one = fromNodeRedis(createClient({ url: server.url, username, password: "x" }));
        ports.push(one);
        return one;
      };
      expect(await createRedisDLQStore(as("noconfig")).validatePersistence()).toMatchObject({
        state: "verified",
        checked: { appendonly: "yes", "maxmemory-policy": "noeviction" },
      });
      const blind = createRedisDLQStore(as("blind"));
      expect(await blind.validatePersistence()).toMatchObject({ state: "unknown" });
      expect(blind.durable).toBe(false);
      const attested = createRedisDLQStore(as("blind"), { attestedBy: "ada" });
      await attested.count();
      expect(await attested.validatePersistence()).toMatchObject({ state: "verified", reason: expect.stringContaining("ada") });
      expect(attested.durable).toBe(true);
    });
  });

  it("DF-10, DA-17, FIN-72: starts without a server, tells an outage, and finds everything after kill and restart", async () => {
    const own = await startRedis([...DURABLE, "--appendfsync", "always"]);
    const redis = fromNodeRedis(createClient({ url: own.url }), { timeoutMs: 2_000 });
    try {
      await own.stop("SIGKILL");
      const store = createRedisDLQStore(redis);
      await expect(store.put(owed("early"))).rejects.toMatchObject({ code: "store_unavailable" });
      expect(await store.validatePersistence()).toMatchObject({ state: "unknown" });
      await own.start();
      for (let i = 0; i < 20; i++) await store.put(owed(`r-${i}`));
      await store.validatePersistence();
      expect(store.durable).toBe(true);

      await own.stop("SIGKILL");
      await expect(store.count()).rejects.toMatchObject({ retryable: true });
      expect(store.durable).toBe(false);

      await own.start();
      expect(await store.count()).toBe(20);
      expect(store.durable).toBe(true);
      expect(await createRedisDLQStore(redis).getReady()).toHaveLength(20);
    } finally {
      await redis.close();
      await own.stop();
    }
  });
});
