/**
 * Fault 39: scripts vanish, keys are of the wrong type, members point nowhere. A script that fails has changed nothing, what cannot be
 * read is quarantined, and all others go on.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../src/message/limits.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import { runLua } from "../../src/store/redis/lua.ts";
import { dead, definition, KEYED, PLAIN, retry } from "../../src/testing/store-conformance/fixtures.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { claimAll, codeOf, conserved, deliverAll, dump, message, type RedisScene, redisScene } from "./redis-scene.ts";

let server: RedisServer;
let made: RedisScene;
const scenes: RedisScene[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterEach(async () => {
  for (const one of scenes.splice(0)) await one.close();
});
afterAll(() => server.stop());

const fresh = async () => {
  made = await redisScene(server);
  scenes.push(made);
  await made.store.topics.put(definition(KEYED, "key"), "code");
  return made.store;
};
const key = (name: string) => `{${made.prefix}}:${name}`;

describe("SCRIPT FLUSH", () => {
  it("in the middle of a load: every call goes on with the script's text", async () => {
    const store = await fresh();
    const load = new AbortController();
    const flusher = (async () => {
      while (!load.signal.aborted) await server.ask("SCRIPT", "FLUSH");
    })();
    const callers = Array.from({ length: 4 }, async () => {
      for (let i = 0; i < 100; i++) expect(await codeOf(store.enqueue([message()]))).toBe("accepted");
    });
    await Promise.all(callers);
    const delivered = await deliverAll(store);
    load.abort();
    await flusher;
    expect([delivered.length, new Set(delivered).size]).toEqual([400, 400]);
  }, 30_000);
});

describe("a server before Redis 7.0", () => {
  it("is told by name: what it says of a first line that it does not know is not what a person needs to read", async () => {
    await fresh();
    // As such a server meets `#!lua`: this one knows that word, so it gets another.
    const script = { name: "check", text: "# lua\nreturn 1", sha: "0".repeat(40), writes: true };
    await expect(runLua(made.port, script, [], [])).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("Redis 7.0"),
    });
  });
});

describe("BUSY", () => {
  it("a script of another program that does not end: calls are told to try later, and go on when it is killed", async () => {
    const store = await fresh();
    await server.ask("CONFIG", "SET", "busy-reply-threshold", "50");
    const endless = server.ask("EVAL", "while true do end", "0").catch(() => {});
    await expect.poll(() => server.ask("PING").then(String, String)).toContain("BUSY");
    try {
      expect(await codeOf(store.enqueue([message()]))).toBe("store_unavailable");
    } finally {
      await server.ask("SCRIPT", "KILL");
      await endless;
    }
    expect(await codeOf(store.enqueue([message()]))).toBe("accepted");
    expect(await conserved(made)).toBe(1);
  });
});

describe("a key of the wrong type", () => {
  const settleAll = async (settlement: Settlement) => {
    const claimed = await claimAll(made.store);
    return () => made.store.settle(claimed.map(({ id, claim, attempt }) => ({ id, claim, attempt, durationMs: 1, settlement })));
  };
  const lane = `u0:0:${PLAIN}:`;
  const ordered = `o:0:${KEYED}:`;

  for (const name of [
    "lanes",
    "dedupe",
    "accepted",
    `l:${lane}`,
    `s:p:${PLAIN}`,
    `l:${ordered}`,
    `k:${ordered}`,
    `o:${ordered}a`,
  ]) {
    it(`planted at ${name}: enqueue is refused and nothing is written`, async () => {
      const store = await fresh();
      await server.ask("SET", key(name), "planted");
      const before = await dump(made);
      const batch = [message({ key: "k" }), message({ topic: KEYED, orderingKey: "a" })];
      expect(await codeOf(store.enqueue(batch))).toBe("store_unavailable");
      expect(await dump(made)).toEqual(before);
      await server.ask("DEL", key(name));
      expect(await codeOf(store.enqueue(batch))).toBe("accepted");
      expect(await deliverAll(store)).toHaveLength(2);
    });
  }

  for (const name of ["leased", "settled", `s:d:${PLAIN}`, `s:o:${PLAIN}`, `l:u1:0:${PLAIN}:`]) {
    it(`planted at ${name}: a settle that needs it is refused whole, and succeeds when it is gone`, async () => {
      const store = await fresh();
      await store.enqueue([message(), message()]);
      const settlement: Settlement =
        name === `s:o:${PLAIN}`
          ? dead()
          : name.startsWith("l:u1")
            ? retry(0, false, 1)
            : { kind: "delivered", outcome: "delivered" };
      const settle = await settleAll(settlement);
      const kept =
        name === "leased" ? ((await made.port.send(key(name), ["ZRANGE", key(name), "0", "-1", "WITHSCORES"])) as string[]) : [];
      await server.ask("SET", key(name), "planted");
      const before = await dump(made);
      expect(await codeOf(settle())).toBe("store_unavailable");
      expect(await dump(made)).toEqual(before);
      await server.ask("DEL", key(name));
      if (kept.length > 0) await server.ask("ZADD", key(name), kept[1] as string, kept[0] as string);
      expect(await settle()).toEqual(["settled", "settled"]);
      await conserved(made);
    });
  }

  it("DF-21: planted over a message: that one is quarantined, the others are delivered", async () => {
    const store = await fresh();
    const broken = message();
    const others = [message(), message()];
    await store.enqueue([broken, ...others]);
    await server.ask("SET", key(`m:${broken.id}`), "planted");
    expect(await deliverAll(store)).toEqual(others.map(({ id }) => id));
    expect(await made.port.send(key("x"), ["ZRANGE", key("quarantine"), "0", "-1"])).toEqual([broken.id]);
  });
});

describe("pointers", () => {
  it("DF-1, DF-31: a lane that names a message which is gone quarantines it in the same script and goes on", async () => {
    const store = await fresh();
    const [gone, there] = [message(), message()];
    await store.enqueue([gone, there]);
    await server.ask("DEL", key(`m:${gone.id}`));
    expect(await deliverAll(store)).toEqual([there.id]);
    expect(await made.port.send(key("x"), ["ZRANGE", key("quarantine"), "0", "-1"])).toEqual([gone.id]);
    expect(await store.lanes()).toEqual([]);
  });

  it("DF-32: a message that no lane, no set or no lease names any more is found by the upkeep and delivered", async () => {
    const store = await fresh();
    const [unlisted, unset, inFlight, ordered] = [
      message(),
      message(),
      message({ tenantId: "t" }),
      message({ topic: KEYED, orderingKey: "a" }),
    ];
    await store.enqueue([unlisted, unset, inFlight, ordered]);
    const held = await store.claim({ owner: "w", leaseMs: 30_000, lanes: [{ lane: `u0:0:${PLAIN}:t`, limit: 1 }] });
    await server.ask(
      "DEL",
      key(`l:u0:0:${PLAIN}:`),
      key(`e:${held[0]?.claim.lease}`),
      key(`o:o:0:${KEYED}:a`),
      key(`l:o:0:${KEYED}:`),
    );
    await server.ask("ZREM", key(`s:p:${PLAIN}`), unset.id);
    expect(await deliverAll(store)).toEqual([]);
    for (let i = 0; i < 6; i++) await store.prune({ keptMs: 60_000, limit: 10 });
    const delivered = await deliverAll(store);
    expect(new Set(delivered)).toEqual(new Set([unlisted, unset, inFlight, ordered].map(({ id }) => id)));
    expect(delivered).toHaveLength(4);
    await conserved(made);
  });

  it("DF-1, DF-2, DF-3, DA-1, DA-3: nothing that is unsettled, and no dead letter, has a time to live", async () => {
    const store = await fresh();
    await store.enqueue([message({ key: "k" }), message({ topic: KEYED, orderingKey: "a" }), message({ delayMs: 60_000 })]);
    const [one] = await claimAll(store);
    if (one) await store.settle([{ id: one.id, claim: one.claim, attempt: one.attempt, durationMs: 1, settlement: dead() }]);
    await store.idle("w", true);
    const keys = [...(await dump(made)).keys()];
    const living = await Promise.all(
      keys.map(async (name) => [name, Number(await made.port.send(name, ["PTTL", name]))] as const),
    );
    expect(living.filter(([, ttl]) => ttl !== -1).map(([name]) => name)).toEqual([key("waiters")]);
  });

  it("DF-8, DF-33: counts are by state, and the oldest counts from its making, not from its next attempt", async () => {
    const store = await fresh();
    await store.enqueue([message({ delayMs: 3_600_000 })], { now: new Date(Date.now() - 60_000) });
    const [line] = await store.counts();
    expect([line?.status, line?.count]).toEqual(["pending", 1]);
    expect(line?.oldestMs).toBeGreaterThanOrEqual(60_000);
    expect(line?.oldestMs).toBeLessThan(120_000);
  });

  it("DF-24: numbers and empty lists come back as they were written", async () => {
    const store = await fresh();
    const payload = '{"a":100000000000000,"b":12345678901234567890,"c":[],"d":{}}';
    const one = message({ payload });
    await store.enqueue([one]);
    const [claimed] = await claimAll(store);
    expect(claimed?.payload).toBe(payload);
    if (claimed) await store.settle([{ id: one.id, claim: claimed.claim, attempt: 1, durationMs: 1, settlement: retry() }]);
    expect((await store.get(one.id))?.payload).toBe(payload);
  });

  it("DF-22: a batch is one round trip", async () => {
    const store = await fresh();
    await store.enqueue(Array.from({ length: LIMITS.batchMessagesMax }, () => message()));
    const calls = async () =>
      Number(/total_commands_processed:(\d+)/.exec(String(await made.port.send(null, ["INFO", "stats"])))?.[1]);
    const asked = () =>
      made.port
        .send(null, ["INFO", "commandstats"])
        .then((text) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(text))?.[1]));
    await calls();
    const before = await asked();
    const claimed = await store.claim({ owner: "w", leaseMs: 30_000, lanes: [{ lane: `u0:0:${PLAIN}:`, limit: 1_000 }] });
    expect(claimed).toHaveLength(LIMITS.batchMessagesMax);
    expect((await asked()) - before).toBe(1);
  });

  it("DF-26: the clock is the server's: a process whose clock is off by an hour claims nothing early", async () => {
    const store = await fresh();
    const one = message({ delayMs: 600_000 });
    await store.enqueue([one]);
    const seconds = Number(((await made.port.send(null, ["TIME"])) as [string])[0]);
    const due = (await store.get(one.id))?.nextAttemptAt?.getTime() ?? 0;
    expect(Math.abs(due - 600_000 - seconds * 1_000)).toBeLessThan(5_000);
    expect(await claimAll(store)).toEqual([]);
  });
});
