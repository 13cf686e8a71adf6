/**
 * Fault 36: Redis is killed in the middle of a load and comes back, with its append-only file and without one; and it hangs. What
 * was accepted is there as far as the store says it survives, a repeat after an unknown outcome is one message, and nothing needs a hand.
 */
import { readdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { NewMessage } from "../../src/message/message.ts";
import { connectRedis, createRedisStore } from "../../src/store/redis/index.ts";
import { DURABLE, NOT_PERSISTENT, startRedis } from "../support/redis-server.ts";
import { claimAll, codeOf, conserved, deliverAll, message, type RedisScene, redisScene } from "./redis-scene.ts";

const scenes: RedisScene[] = [];
const scene = async (...args: Parameters<typeof redisScene>) => {
  const made = await redisScene(...args);
  scenes.push(made);
  return made;
};
afterEach(async () => {
  for (const one of scenes.splice(0)) await one.close();
});

describe("Redis is killed", () => {
  it("with SIGKILL under load, `everysec`: nothing that was accepted is lost, a repeat of the unknown is one message", async () => {
    const server = await startRedis(DURABLE);
    const { store, ...rest } = await scene(server);
    expect(store.traits.survives).toBe("process-crash");
    const known = new Map<string, NewMessage>();
    const unknown: NewMessage[] = [];
    const codes = new Set<string>();
    const load = new AbortController();
    let made = 0;
    const caller = async () => {
      while (!load.signal.aborted) {
        const one = message({ key: `k-${made++}` });
        const code = await codeOf(store.enqueue([one]));
        codes.add(code);
        if (code === "accepted") known.set(one.id, one);
        else unknown.push(one);
      }
    };
    const callers = Array.from({ length: 8 }, caller);
    while (known.size < 500) await new Promise((resolve) => setTimeout(resolve, 5));
    await server.stop("SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 50));
    load.abort();
    await Promise.all(callers);
    expect([...codes].filter((code) => !["accepted", "outcome_unknown", "store_unavailable"].includes(code))).toEqual([]);
    expect(unknown.length).toBeGreaterThan(0);

    await server.start();
    await store.check();
    for (const id of known.keys()) expect(await store.get(id)).not.toBeNull();
    const repeats = unknown.slice(0, 200);
    for (const one of repeats) expect(await store.enqueue([one])).toEqual([{ kind: "accepted", id: one.id }]);
    const all = await conserved({ store, ...rest });
    const delivered = await deliverAll(store);
    expect([delivered.length, new Set(delivered).size]).toEqual([all, all]);
  }, 60_000);

  it("DF-4, DF-5: between claim and settle: the claim still counts afterwards, and a lease that ran out is taken over once", async () => {
    const server = await startRedis(DURABLE);
    const { store } = await scene(server);
    await store.enqueue([message(), message()]);
    const [first, second] = await claimAll(store, "worker", 1_000);
    await server.stop("SIGKILL");
    await server.start();
    const settle = (one: NonNullable<typeof first>) =>
      store.settle([
        {
          id: one.id,
          claim: one.claim,
          attempt: one.attempt,
          durationMs: 1,
          settlement: { kind: "delivered", outcome: "delivered" },
        },
      ]);
    expect(first && (await settle(first))).toEqual(["settled"]);
    const later = new Date(Date.now() + 60_000);
    const taken = await store.reclaim({ owner: "other", leaseMs: 30_000, limit: 10, now: later });
    expect(taken.map(({ id }) => id)).toEqual([second?.id]);
    expect(second && (await settle(second))).toEqual(["lost"]);
  }, 30_000);

  it("DF-10: without an append-only file the store says that it survives nothing, notices the loss, and goes on by itself", async () => {
    const server = await startRedis(NOT_PERSISTENT);
    const losses: string[] = [];
    const { store } = await scene(server, { onLoss: (text) => losses.push(text) });
    expect(store.traits.survives).toBe("nothing");
    const before = message();
    await store.enqueue([before]);
    await server.stop("SIGKILL");
    expect(await codeOf(store.enqueue([message()]))).toMatch(/store_unavailable|outcome_unknown/);
    await server.start();
    const after = message();
    expect(await store.enqueue([after])).toEqual([{ kind: "accepted", id: after.id }]);
    expect(losses).toHaveLength(1);
    expect(await store.get(before.id)).toBeNull();
    expect(await deliverAll(store)).toEqual([after.id]);
  }, 30_000);

  it("a loss in the middle of many callers: every call goes on by itself, and the loss is told once", async () => {
    const server = await startRedis(NOT_PERSISTENT);
    const losses: string[] = [];
    const { store } = await scene(server, { onLoss: (text) => losses.push(text) });
    const flushed = new AbortController();
    const caller = async () => {
      let after = 0;
      while (after < 20) {
        if (flushed.signal.aborted) after++;
        await store.enqueue([message()]);
      }
    };
    const callers = Promise.all(Array.from({ length: 32 }, caller));
    for (let round = 1; round <= 5; round++) {
      await server.ask("FLUSHALL");
      await expect.poll(() => losses.length).toBe(round);
    }
    flushed.abort();
    await callers;
    expect(losses).toHaveLength(5);
  }, 30_000);

  it("I12: a torn end of the append-only file, as a power cut under `everysec` leaves it: what is there is whole", async () => {
    const server = await startRedis(DURABLE);
    const made = await scene(server);
    for (let i = 0; i < 20; i++) await made.store.enqueue([message({ key: `k${i}` }), message({ delayMs: i })]);
    await deliverAll(made.store);
    await made.store.enqueue([message({ key: "last" }), message()]);
    // While a sync is under way Redis may keep what comes next to itself for up to two seconds.
    await expect
      .poll(async () => String(await server.ask("INFO", "persistence")), { timeout: 10_000 })
      .toMatch(/aof_buffer_length:0\s+aof_pending_bio_fsync:0/);
    await server.stop("SIGKILL");
    const folder = join(server.folder, "appendonlydir");
    const name = (await readdir(folder)).find((one) => one.includes(".incr.")) as string;
    const { size } = await stat(join(folder, name));
    // In the middle of the last script's commands, which the file holds as one transaction.
    await truncate(join(folder, name), size - 150);
    await server.start();
    await made.store.check();
    expect(await conserved(made)).toBe(40);
    const again = message({ key: "last" });
    expect(await made.store.enqueue([again])).toEqual([{ kind: "accepted", id: again.id }]);
    expect(await deliverAll(made.store)).toContain(again.id);
  }, 30_000);

  it("hanging: a call ends with an unknown outcome at its deadline, a repeat of it is one message", async () => {
    const server = await startRedis(DURABLE);
    const made = await scene(server);
    const { store } = made;
    server.signal("SIGSTOP");
    const one = message();
    try {
      // What opening asks of each node has a deadline, too.
      expect(await codeOf(store.durability())).toBe("store_unavailable");
      expect(await codeOf(store.enqueue([one]))).toBe("outcome_unknown");
      expect(await codeOf(store.check())).toMatch(/store_unavailable|outcome_unknown/);
    } finally {
      server.signal("SIGCONT");
    }
    expect(await store.enqueue([one])).toEqual([{ kind: "accepted", id: one.id }]);
    expect(await conserved(made)).toBe(1);
  }, 30_000);

  it("a store that is closed while it opens, and a port while it subscribes, leave no connection that would keep the process alive", async () => {
    const server = await startRedis(NOT_PERSISTENT);
    const connections = async () =>
      String(await server.ask("CLIENT", "LIST"))
        .trim()
        .split("\n").length;
    const own = await connections();
    for (const waitMs of [0, 1, 3, 6, 10]) {
      const store = createRedisStore({ redis: server.url });
      const opening = codeOf(store.open());
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      await store.close();
      expect(["closed", "accepted", "store_unavailable", "outcome_unknown"]).toContain(await opening);
    }
    const port = await connectRedis(server.url);
    const subscribing = codeOf(port.subscribe("x", () => {}));
    await port.close();
    expect(await subscribing).toBe("closed");
    await expect.poll(connections, { timeout: 5_000 }).toBe(own);
  }, 30_000);

  it("DA-17, DF-28: it is not there at the start: opening says so, and the same store opens later", async () => {
    const server = await startRedis(DURABLE);
    await server.stop();
    expect(await codeOf(redisScene(server))).toBe("store_unavailable");
    await server.start();
    const { store } = await scene(server);
    await store.check();
  }, 30_000);
});
