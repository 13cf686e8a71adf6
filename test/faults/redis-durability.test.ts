/**
 * Faults 37 and 38: durability is read from the server and never assumed. Wrong policy, full memory, refused CONFIG, silent replicas.
 */

import { createClient } from "redis";
import { afterEach, describe, expect, it } from "vitest";
import { fromNodeRedis, readDurability, survivesOf } from "../../src/store/redis/index.ts";
import { definition, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { until } from "../support/redis-cluster.ts";
import { DURABLE, type RedisServer, startRedis } from "../support/redis-server.ts";
import { openRedisStore } from "../support/redis-store.ts";
import { claimAll, codeOf, conserved, deliverAll, dump, message, type RedisScene, redisScene } from "./redis-scene.ts";

const scenes: RedisScene[] = [];
const scene = async (...args: Parameters<typeof redisScene>) => {
  const made = await redisScene(...args);
  scenes.push(made);
  return made;
};
afterEach(async () => {
  for (const one of scenes.splice(0)) await one.close();
});

const verdicts = async ({ port }: RedisScene, attest = {}) => {
  const found = await readDurability(port, attest);
  const lines = found.nodes.flatMap(({ findings }) => findings.map(({ name, verdict }) => [name, verdict] as const));
  return { ...Object.fromEntries(lines), survives: survivesOf(found) };
};

describe("what the server says", () => {
  it("DF-9, DF-10: verified, and what survives follows from it", async () => {
    const server = await startRedis(DURABLE);
    const made = await scene(server);
    const usual = { appendonly: "verified", appendfsync: "verified", "maxmemory-policy": "verified", maxmemory: "failed" };
    expect(await verdicts(made)).toMatchObject({ ...usual, survives: "process-crash" });
    await server.ask("CONFIG", "SET", "appendfsync", "always");
    await made.store.durability();
    expect(made.store.traits.survives).toBe("power-loss");
    await server.ask("CONFIG", "SET", "appendonly", "no");
    expect(await verdicts(made)).toMatchObject({ appendonly: "failed", survives: "nothing" });
  });

  it("DF-9: CONFIG refused: INFO says part of it, the rest is unknown, and only the operator can vouch for it", async () => {
    const server = await startRedis([...DURABLE, "--rename-command", "CONFIG", ""]);
    const made = await scene(server);
    expect(await verdicts(made)).toMatchObject({
      appendonly: "verified",
      appendfsync: "unknown",
      "maxmemory-policy": "verified",
    });
    expect(made.store.traits.survives).toBe("process-crash");
    expect(await verdicts(made, { appendfsync: "always" })).toMatchObject({ appendfsync: "verified", survives: "power-loss" });
  });

  it("DF-9: CONFIG and INFO refused by an ACL: everything is unknown, and unknown survives nothing until it is attested", async () => {
    const server = await startRedis(DURABLE);
    await server.ask("ACL", "SETUSER", "default", "-config", "-info");
    const made = await scene(server);
    expect(await verdicts(made)).toMatchObject({ appendonly: "unknown", "maxmemory-policy": "unknown", survives: "nothing" });
    const attest = { appendonly: "yes", appendfsync: "everysec", "maxmemory-policy": "noeviction" };
    expect(await verdicts(made, attest)).toMatchObject({ appendonly: "verified", survives: "process-crash" });
    await made.store.enqueue([message()]);
    expect(await deliverAll(made.store)).toHaveLength(1);
  });

  it("attack 28: a user that may only touch the store's own keys and no dangerous command is enough", async () => {
    const server = await startRedis(DURABLE);
    const prefix = "a.b-c";
    const rights = ["on", ">secret", `~{${prefix}}:*`, `&{${prefix}}:*`, "+@all", "-@dangerous", "-@admin"];
    await server.ask("ACL", "SETUSER", "makegood", ...rights);
    const client = createClient({ url: server.url.replace("//", "//makegood:secret@") });
    const port = fromNodeRedis(client);
    const store = await openRedisStore({ redis: port, prefix, attest: { appendonly: "yes" } });
    try {
      expect(store.traits).toMatchObject({ survives: "process-crash", wake: "push" });
      await store.topics.put(definition(PLAIN), "code");
      await store.enqueue(["a:b", "{x}", "*", "[a]?"].map((tenantId) => message({ tenantId, key: tenantId })));
      await store.idle("w", true);
      expect(await deliverAll(store)).toHaveLength(4);
      await store.prune({ keptMs: 0, limit: 100, now: new Date(Date.now() + 1_000) });
      expect(await store.counts({ delivered: true })).toEqual([]);
      await expect(port.send(null, ["SET", "other", "1"])).rejects.toThrow(/NOPERM/);
    } finally {
      await store.close();
      await port.close();
    }
  });

  it("a server that lets nobody in is not one whose settings are unknown: nothing can be attested for it", async () => {
    const server = await startRedis(["--requirepass", "secret"]);
    const port = fromNodeRedis(createClient({ url: server.url }));
    try {
      expect(await codeOf(readDurability(port, { appendonly: "yes" }))).toBe("store_unavailable");
    } finally {
      await port.close();
    }
  });

  it("DA-2: a policy that evicts refuses to open, unless it is allowed by its name", async () => {
    const server = await startRedis([...DURABLE, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    expect(await codeOf(redisScene(server))).toBe("invalid_config");
    expect(await codeOf(redisScene(server, { allowEviction: "volatile-lru" }))).toBe("invalid_config");
    const { store } = await scene(server, { allowEviction: "allkeys-lru" });
    expect(store.traits.survives).toBe("nothing");
  });
});

describe("Redis is full", () => {
  it("refuses new messages whole with store_full, lets the store drain, and takes them again", async () => {
    const server = await startRedis([...DURABLE, "--maxmemory", "8mb"]);
    const made = await scene(server);
    const { store } = made;
    const payload = JSON.stringify("x".repeat(20_000));
    let accepted = 0;
    let code = "";
    for (; accepted < 2_000; accepted++) {
      code = await codeOf(store.enqueue([message({ payload })]));
      if (code !== "accepted") break;
    }
    expect(code).toBe("store_full");
    const before = await dump(made);
    expect(await codeOf(store.enqueue([message({ payload, key: "a" }), message({ key: "b" })]))).toBe("store_full");
    expect(await dump(made)).toEqual(before);
    expect(await codeOf(store.check())).toBe("store_full");
    expect(await deliverAll(store)).toHaveLength(accepted);
    const gone = await store.prune({ keptMs: 0, limit: 100_000, now: new Date(Date.now() + 1_000) });
    expect(gone).toBe(accepted);
    await until("memory is free", async () => (await codeOf(store.enqueue([message({ payload })]))) === "accepted");
    await conserved(made);
  }, 30_000);
});

describe("a replica", () => {
  async function pair(): Promise<[RedisServer, RedisServer]> {
    const primary = await startRedis(DURABLE);
    const replica = await startRedis([...DURABLE, "--replicaof", `127.0.0.1 ${primary.port}`]);
    await until("the replica follows", async () => /link_status:up/.test(String(await replica.ask("INFO", "replication"))));
    return [primary, replica];
  }

  it("DF-28: black-holed: where replicas are asked for, an enqueue is not told as accepted, and a repeat is one message", async () => {
    const [primary, replica] = await pair();
    const made = await scene(primary, { replicas: { count: 1, timeoutMs: 300 } });
    const first = message();
    // On a busy machine the replica may need longer than that for the first one.
    await until("the replica answers", async () => (await codeOf(made.store.enqueue([first]))) === "accepted");
    replica.signal("SIGSTOP");
    const [one, same] = [message({ key: "k", payload: "1" }), message({ key: "k", payload: "1" })];
    try {
      expect(await codeOf(made.store.enqueue([one]))).toBe("outcome_unknown");
      // A duplicate is as good as what it is a duplicate of, and that is on one machine only.
      expect(await codeOf(made.store.enqueue([same]))).toBe("outcome_unknown");
    } finally {
      replica.signal("SIGCONT");
    }
    await until("the replica answers", async () => (await codeOf(made.store.enqueue([one]))) === "accepted");
    expect(await conserved(made)).toBe(2);
  }, 30_000);

  it("connected to by mistake: check says that it cannot be written", async () => {
    const [, replica] = await pair();
    expect(await codeOf(redisScene(replica))).toBe("store_unavailable");
  }, 30_000);

  it("a primary that must have replicas and has none refuses, and nothing is written", async () => {
    const server = await startRedis(DURABLE);
    const made = await scene(server);
    await server.ask("CONFIG", "SET", "min-replicas-to-write", "1");
    const before = await dump(made);
    expect(await codeOf(made.store.enqueue([message()]))).toBe("store_unavailable");
    expect(await dump(made)).toEqual(before);
    await server.ask("CONFIG", "SET", "min-replicas-to-write", "0");
    await made.store.enqueue([message()]);
    expect(await claimAll(made.store)).toHaveLength(1);
  });
});
