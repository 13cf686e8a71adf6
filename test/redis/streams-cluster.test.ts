/** The doors on a Redis Cluster of three masters: every script finds its keys on one node, through both clients. */
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore } from "../../src/index.ts";
import { auditTopics, startAuditStream } from "../../src/presets/index.ts";
import { createMemoryAudit } from "../../src/store/memory/audit.ts";
import { createRedisDLQStore } from "../../src/store/redis/dlq-port/redis-dlq-store.ts";
import { fromIoredis, fromNodeRedis, type RedisPort } from "../../src/store/redis/port.ts";
import { startInlet } from "../../src/store/redis/streams/inlet.ts";
import { fieldOf } from "../../src/store/redis/streams/seed-names.ts";
import { envelope } from "../audit/records.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { until } from "../unit/delivery/support.ts";
import { owed } from "./dlq-port-suite.ts";

describe("on a cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });

  describe.each(["node-redis", "ioredis"] as const)("through %s", (kind) => {
    let redis: RedisPort;
    beforeAll(() => {
      redis =
        kind === "node-redis"
          ? fromNodeRedis(createCluster({ rootNodes: [{ url: cluster.url }] }))
          : fromIoredis(new Cluster([cluster.url], { lazyConnect: true }));
    });
    afterAll(() => redis.close());

    it("DF-25: the seeds' port walks its whole life", async () => {
      const store = createRedisDLQStore(redis, { prefix: `{finn:hounfour:dlq}:${kind}` });
      for (const id of ["a", "b", "c"]) expect(await store.put(owed(id))).toBe("created");
      expect(await store.put(owed("a", { actual_cost_micro: "1" }))).toBe("conflict");
      expect(await store.getReady()).toHaveLength(3);
      const claim = await store.claimForReplay("a");
      expect(await store.incrementAttempt("a", claim?.token as string, { delayMs: 0 })).toBe(2);
      expect(await store.terminalDrop("a", claim?.token as string, "exhausted")).toBe(true);
      expect(await store.replayTerminal("a")).toBe(true);
      expect(await store.delete("b")).toBe(true);
      const { data } = await store.store.list({ topic: "billing/finalize", key: "c", limit: 1 });
      for (const { lane } of await store.store.lanes()) {
        const key = `{finn:hounfour:dlq}:${kind}:l:${lane}`;
        await redis.send(key, ["ZREM", key, data[0]?.id as string]);
      }
      expect(await store.reconcile()).toEqual({ checked: 2, mended: 1, quarantined: 0 });
      expect(await store.gauges()).toEqual({ due: 2, waiting: 0, claimed: 0, terminal: 0, quarantined: 1 });
      expect(await store.validatePersistence()).toMatchObject({ state: "verified" });
      expect(store.durable).toBe(true);
    });

    it("the seeds' audit stream opens under its own names, and its dead stream where one script reaches both", async () => {
      await redis.send("audit-dlq", ["DEL", "audit-dlq"]);
      await redis.send("{audit-dlq}:dead-letter", ["DEL", "{audit-dlq}:dead-letter", "{audit-dlq}:dead-letter:published"]);
      const audit = createMemoryAudit();
      const mg = await createMakegood({ store: createMemoryStore(), topics: auditTopics(audit), pollMs: 10 });
      mg.work();
      const doors = startAuditStream({ mg, redis });
      const added = Date.now() - 120_000;
      const add = (type: string, data: string) =>
        // Added two minutes ago: the first wait is over (AUD-19).
        redis.send("audit-dlq", ["XADD", "audit-dlq", `${added}-*`, "audit_type", type, "audit_data", data]);
      await add("executions", JSON.stringify(envelope("e-1")));
      await add("nobody", "{}");
      await until(async () => (await audit.get("e-1")) !== null);
      await until(async () => Number(await redis.send("{audit-dlq}:dead-letter", ["XLEN", "{audit-dlq}:dead-letter"])) === 1);
      await doors.stop();
      await mg.close();
    });

    it("the inlet reads, ends and quarantines", async () => {
      const stream = `orders-${kind}`;
      const add = (...fields: string[]) => redis.send(stream, ["XADD", stream, "*", ...fields]);
      for (let n = 0; n < 5; n++) await add("body", String(n));
      await add("wrong", "1");
      const accepted: string[] = [];
      const inlet = startInlet({
        ...{ redis, stream, group: "workers", blockMs: 50, sweepMs: 50 },
        read: (entry) => ({ topic: "a/orders", payloadText: fieldOf(entry, "body") }),
        accept: async (messages) => void accepted.push(...messages.map(({ payloadText }) => payloadText)),
      });
      await until(async () => Number(await redis.send(stream, ["XLEN", stream])) === 0);
      expect(accepted).toEqual(["0", "1", "2", "3", "4"]);
      const dead = `{${stream}}:dead-letter`;
      expect(await redis.send(dead, ["XLEN", dead])).toBe(1);
      expect(await inlet.depth()).toMatchObject({ unprocessed: 0 });
      await inlet.stop();
    });
  });
});
