/** The inlet: an existing stream, by consumer group, into a store; on a real server, through both clients. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MakegoodError } from "../../src/index.ts";
import { fromIoredis, fromNodeRedis, type RedisPort } from "../../src/store/redis/port.ts";
import { type Inlet, startInlet } from "../../src/store/redis/streams/inlet.ts";
import type { InletMessage, InletNotice, InletOptions } from "../../src/store/redis/streams/inlet-options.ts";
import { AUDIT_CLASS_STREAMS, AUDIT_STREAM, fieldOf, RECOVERY_STREAM } from "../../src/store/redis/streams/seed-names.ts";
import { checkReclaim, reclaimBackoffMs, reclaimSpanMs } from "../../src/store/redis/streams/takeover.ts";
import { DURABLE, type RedisServer, startRedis } from "../support/redis-server.ts";
import { pause, until } from "../unit/delivery/support.ts";

const STREAM = "orders";
const GROUP = "workers";
const DEAD = `{${STREAM}}:dead-letter`;

describe("the inlet", () => {
  let server: RedisServer;
  let redis: RedisPort;
  const inlets: Inlet[] = [];
  const ports: RedisPort[] = [];
  let notices: InletNotice[];
  let accepted: InletMessage[];
  const send = (...args: string[]) => redis.send(null, args);
  const add = (fields: Record<string, string>, stream = STREAM) =>
    send("XADD", stream, "*", ...Object.entries(fields).flat()) as Promise<string>;
  const addMany = async (count: number): Promise<string[]> => {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) ids.push(await add({ body: JSON.stringify({ n }) }));
    return ids;
  };
  const pending = async (): Promise<{ id: string; consumer: string; deliveries: number }[]> =>
    ((await send("XPENDING", STREAM, GROUP, "-", "+", "10000")) as [string, string, number, number][]).map(
      ([id, consumer, , deliveries]) => ({ id, consumer, deliveries }),
    );
  const length = async (stream = STREAM): Promise<number> => Number(await send("XLEN", stream));
  const of = <W extends InletNotice["what"]>(what: W) =>
    notices.filter((notice): notice is Extract<InletNotice, { what: W }> => notice.what === what);

  function start(over: Partial<InletOptions> = {}): Inlet {
    const inlet = startInlet({
      ...{ redis, stream: STREAM, group: GROUP, blockMs: 50, sweepMs: 50, reclaimIdleMs: 60_000 },
      read: (entry) => ({ topic: "a/orders", payloadText: fieldOf(entry, "body") }),
      accept: async (messages) => void accepted.push(...messages),
      onNotice: (notice) => void notices.push(notice),
      ...over,
    });
    inlets.push(inlet);
    return inlet;
  }
  /** What kill -9 leaves: entries handed out to a consumer that will never come back. */
  const diedWith = async (consumer: string, count: number): Promise<void> => {
    await send("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM").catch(() => {});
    await send("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", String(count), "STREAMS", STREAM, ">");
  };
  /** Lets time pass for a pending entry without waiting for it. */
  const age = (id: string, idleMs: number, deliveries: number, consumer = "dead"): Promise<unknown> =>
    send("XCLAIM", STREAM, GROUP, consumer, "0", id, "IDLE", String(idleMs), "RETRYCOUNT", String(deliveries), "JUSTID");

  beforeAll(async () => {
    server = await startRedis();
    redis = fromNodeRedis(createClient({ url: server.url }));
    ports.push(redis);
  });
  beforeEach(async () => {
    notices = [];
    accepted = [];
    await send("FLUSHALL");
  });
  afterEach(async () => {
    await Promise.all(inlets.splice(0).map((inlet) => inlet.stop({ timeoutMs: 1_000 })));
  });
  afterAll(async () => {
    for (const port of ports) await port.close();
    await server.stop();
  });

  describe.each(["node-redis", "ioredis"] as const)("through %s", (kind) => {
    let port: RedisPort;
    beforeAll(() => {
      port =
        kind === "node-redis"
          ? fromNodeRedis(createClient({ url: server.url }))
          : fromIoredis(new Redis(server.url, { lazyConnect: true }));
      ports.push(port);
    });

    it("DR-36, DA-7: takes what came before the group and what comes after, and leaves neither pending nor depth", async () => {
      const ids = await addMany(25);
      const inlet = start({ redis: port });
      ids.push(...(await addMany(5)));
      await until(async () => accepted.length === 30 && (await length()) === 0);
      expect(accepted.map(({ key }) => key)).toEqual(ids.map((id) => `${STREAM}:${id}`));
      expect(accepted.map(({ payloadText }) => JSON.parse(payloadText).n)).toEqual([...Array(25).keys(), ...Array(5).keys()]);
      expect(await pending()).toEqual([]);
      expect(await inlet.depth()).toMatchObject({ waiting: 0, pending: 0, unprocessed: 0, exact: true });
    });

    it("DA-13: a malformed entry is quarantined whole, with its reason, and the others go on", async () => {
      const bad = await add({ audit_type: "orchestration", ["__proto__"]: "x" });
      await addMany(2);
      start({ redis: port });
      await until(async () => accepted.length === 2 && (await length()) === 0);
      const [[, fields]] = (await send("XRANGE", DEAD, "-", "+")) as [[string, string[]]];
      expect(fields).toEqual([
        ...["dead_code", "invalid_message", "dead_reason", `entry ${bad} has no field body`],
        ...["dead_stream", STREAM, "dead_group", GROUP, "dead_id", bad, "dead_deliveries", "1"],
        ...["audit_type", "orchestration", "__proto__", "x"],
      ]);
      expect(of("quarantined")).toMatchObject([{ id: bad, code: "invalid_message" }]);
      expect(await pending()).toEqual([]);
    });

    it("DA-11: stops at once on an empty stream, and within its budget while the store hangs", async () => {
      const idle = start({ redis: port, blockMs: 200 });
      await until(() => of("started").length === 1);
      await idle.stop({ timeoutMs: 5_000 });
      expect(of("stopped")).toHaveLength(1);

      const [id] = await addMany(1);
      const hung = start({ redis: port, accept: () => new Promise(() => {}) });
      await until(async () => (await pending()).length === 1);
      await hung.stop({ timeoutMs: 100 });
      // Given free at once: the next one takes it without waiting for a minute, and it was charged nothing.
      start({ redis: port });
      await until(() => accepted.length === 1);
      expect(accepted[0]?.key).toBe(`${STREAM}:${id}`);
      expect(of("reclaimed")).toMatchObject([{ ids: [id] }]);
      await until(async () => (await length()) === 0);
    });
  });

  it("DA-9: an entry is neither acknowledged nor deleted before its message is committed", async () => {
    const [id] = await addMany(1);
    let commit = (): void => {};
    start({
      accept: () =>
        new Promise<void>((resolve) => {
          commit = resolve;
        }),
    });
    await until(async () => (await pending()).length === 1);
    expect(await length()).toBe(1);
    expect(await pending()).toMatchObject([{ id, deliveries: 1 }]);
    commit();
    await until(async () => (await length()) === 0);
    expect(await pending()).toEqual([]);
  });

  it("DA-12: consumers have names of their own; silent ones go once they hold nothing, and never before", async () => {
    await addMany(3);
    await diedWith("held", 1);
    await send("XGROUP", "CREATECONSUMER", STREAM, GROUP, "empty");
    const [one, two] = [start({ silentMs: 1 }), start({ silentMs: 86_400_000 })];
    expect(one.consumer).not.toBe(two.consumer);
    await until(() => of("consumers_removed").some(({ consumers }) => consumers.includes("empty")));
    await until(() => accepted.length === 2);
    await until(async () => (await pending()).length === 1);
    const [stuck] = await pending();
    expect(stuck).toMatchObject({ consumer: "held" });
    // Silent for as long as the one that went, and it stays, because it holds something.
    await pause(100);
    expect(of("consumers_removed").flatMap(({ consumers }) => consumers)).not.toContain("held");
    await age(stuck?.id as string, 120_000, 1, "held");
    await until(() => of("consumers_removed").some(({ consumers }) => consumers.includes("held")));
    await until(async () => accepted.length === 3 && (await length()) === 0);
  });

  it("DR-8, DR-10: everything a dead consumer held is taken over and worked on, page after page, once", async () => {
    const ids = await addMany(350);
    await diedWith("dead", 350);
    for (const id of ids) await age(id, 70_000, 1);
    const settings = { batchMax: 50, sweepMax: 50, sweepMs: 10 };
    start(settings);
    start(settings);
    await until(async () => (await length()) === 0, 20_000);
    expect(accepted).toHaveLength(350);
    expect(new Set(accepted.map(({ key }) => key))).toEqual(new Set(ids.map((id) => `${STREAM}:${id}`)));
    expect(await pending()).toEqual([]);
  });

  it("REC-40, CON-27, DR-9: each takeover waits twice as long as the one before, up to the cap", async () => {
    const rules = checkReclaim({});
    expect([0, 1, 2, 3].map((n) => reclaimBackoffMs(rules, n))).toEqual([60_000, 120_000, 240_000, 480_000]);
    expect(reclaimBackoffMs(rules, 20)).toBe(86_400_000);
    expect(() => checkReclaim({ reclaimIdleMs: 10, reclaimIdleMsMax: 5 })).toThrow(/reclaimIdleMsMax/);
    // The backoff may begin lower or higher than the idle time that makes an entry a dead one's.
    const low = checkReclaim({ reclaimIdleMs: 60_000, reclaimBaseMs: 20_000 });
    expect([0, 1, 2, 3].map((n) => reclaimBackoffMs(low, n))).toEqual([60_000, 60_000, 80_000, 160_000]);
    const high = checkReclaim({ reclaimIdleMs: 60_000, reclaimBaseMs: 300_000, reclaimIdleMsMax: 500_000 });
    expect([0, 1, 2].map((n) => reclaimBackoffMs(high, n))).toEqual([300_000, 500_000, 500_000]);
    expect(() => checkReclaim({ reclaimBaseMs: 600_000, reclaimIdleMsMax: 500_000 })).toThrow(/reclaimBaseMs/);
    // One minute, two, four, and eight before the takeover that quarantines.
    expect(reclaimSpanMs(rules)).toBe(15 * 60_000);

    const [ripe, early] = (await addMany(2)) as [string, string];
    await diedWith("dead", 2);
    // Both were taken over once before; the second has not been idle for two minutes yet.
    await age(ripe, 121_000, 2);
    await age(early, 100_000, 2);
    start();
    await until(() => accepted.length === 1);
    expect(accepted[0]?.key).toBe(`${STREAM}:${ripe}`);
    await until(() => of("reclaimed").some(({ deferred }) => deferred === 1));
    expect(await pending()).toMatchObject([{ id: early, consumer: "dead", deliveries: 2 }]);
  });

  it("REC-40: why XAUTOCLAIM does not find what is to be taken over: what it finds too early never becomes ripe", async () => {
    const [early] = (await addMany(1)) as [string];
    await diedWith("dead", 1);
    await age(early, 100_000, 2);
    const idleMs = async (): Promise<number> =>
      Number(((await send("XPENDING", STREAM, GROUP, "-", "+", "1")) as [string, string, number, number][])[0]?.[2]);
    expect(await idleMs()).toBeGreaterThanOrEqual(100_000);
    await send("XAUTOCLAIM", STREAM, GROUP, "finder", "60000", "0-0", "COUNT", "10", "JUSTID");
    // It counts no delivery, and yet the entry has another reader and the time it was idle is gone.
    expect(await pending()).toMatchObject([{ id: early, consumer: "finder", deliveries: 2 }]);
    expect(await idleMs()).toBeLessThan(60_000);
  });

  it("DR-7: taken over more often than allowed, and only when idle again, an entry is quarantined with its count", async () => {
    const [worn, busy] = (await addMany(2)) as [string, string];
    await diedWith("dead", 2);
    await age(worn, 500_000, 4);
    await age(busy, 1_000, 9, "alive");
    start();
    await until(() => of("quarantined").length === 1);
    expect(of("quarantined")).toMatchObject([{ id: worn, code: "reclaims_exhausted" }]);
    expect(await length(DEAD)).toBe(1);
    expect(await pending()).toMatchObject([{ id: busy, consumer: "alive" }]);
    expect(accepted).toEqual([]);
  });

  it.each([
    ["that refuses", () => Promise.reject(new MakegoodError("store_unavailable", "the store is away"))],
    ["that hangs", () => new Promise<void>(() => {})],
  ])(
    "CON-12, DA-28: an outage of a store %s costs no entry anything, and nobody else takes what is in hand",
    async (_, outage) => {
      await addMany(8);
      let away = true as boolean;
      const accept = async (messages: readonly InletMessage[]): Promise<void> => {
        if (away) await outage();
        accepted.push(...messages);
      };
      const rules = { reclaimIdleMs: 1_500, acceptTimeoutMs: 300, sweepMs: 20 };
      start({ accept, ...rules });
      await until(async () => (await pending()).length === 8);
      start({ accept, ...rules });
      // Longer than the idle time that makes an entry a dead one's; one by one, the batch would take longer still.
      await pause(2_500);
      expect((await pending()).map(({ deliveries }) => deliveries)).toEqual(Array(8).fill(1));
      expect(of("reclaimed")).toEqual([]);
      expect(of("accept_failed").length).toBeGreaterThan(0);
      away = false;
      await until(async () => (await length()) === 0);
      expect(accepted).toHaveLength(8);
    },
  );

  it("EV-31: one entry that is refused for good is found and quarantined, one that breaks the caller holds up nobody", async () => {
    const ids = await addMany(6);
    start({
      async accept(messages) {
        const numbers = messages.map(({ payloadText }) => JSON.parse(payloadText).n as number);
        if (numbers.includes(2)) throw new MakegoodError("key_conflict", "another payload has this key");
        if (numbers.includes(4)) throw new TypeError("cannot read properties of undefined");
        accepted.push(...messages);
      },
    });
    await until(() => accepted.length === 4 && of("quarantined").length === 1);
    expect(of("quarantined")).toMatchObject([{ id: ids[2], code: "key_conflict" }]);
    await addMany(2);
    await until(() => accepted.length === 6);
    await until(async () => (await pending()).length === 1);
    expect(await pending()).toMatchObject([{ id: ids[4], deliveries: 1 }]);
  });

  it("gives the malformed to onMalformed where there is one, and ends them only after it agreed", async () => {
    const id = await add({ wrong: "1" });
    let refuse = true as boolean;
    const told: unknown[] = [];
    start({
      async onMalformed(malformed) {
        if (refuse) throw new Error("not now");
        told.push(malformed);
      },
    });
    await until(() => of("quarantine_failed").length > 0);
    expect(await length()).toBe(1);
    refuse = false;
    await until(async () => (await length()) === 0);
    expect(told).toMatchObject([{ entry: { id, fields: { wrong: "1" } }, code: "invalid_message", deliveries: 1 }]);
    expect(await length(DEAD)).toBe(0);
  });

  it("acknowledges without deleting where another group reads the same stream", async () => {
    const ids = await addMany(3);
    await send("XGROUP", "CREATE", STREAM, "others", "0");
    const inlet = start();
    await until(() => accepted.length === 3);
    await until(async () => (await pending()).length === 0);
    expect(await length()).toBe(3);
    expect(await inlet.depth()).toMatchObject({ unprocessed: 0 });
    const [[, seen]] = (await send("XREADGROUP", "GROUP", "others", "o", "STREAMS", STREAM, ">")) as [[string, [string][]]];
    expect(seen.map(([id]) => id)).toEqual(ids);
  });

  it("fault 40: an entry that was cut off while pending is reported as lost and does not stay pending", async () => {
    const ids = await addMany(3);
    await diedWith("dead", 3);
    for (const id of ids) await age(id, 70_000, 1);
    await send("XDEL", STREAM, ids[1] as string);
    start();
    await until(async () => (await pending()).length === 0);
    expect(accepted).toHaveLength(2);
    expect(of("lost")).toMatchObject([{ ids: [ids[1]] }]);
  });

  it("EV-17: drains what a former life under the same name left, and what a broken connection swallowed", async () => {
    await addMany(2);
    await diedWith("pod-1", 2);
    let swallow = false as boolean;
    const lossy: RedisPort = {
      ...redis,
      duplicate: async () => {
        const own = await redis.duplicate();
        return {
          ...own,
          async send(key, args, options) {
            const reply = await own.send(key, args, options);
            if (!swallow || reply === null) return reply;
            swallow = false;
            throw new MakegoodError("outcome_unknown", "the connection broke");
          },
        };
      },
    };
    start({ redis: lossy, consumer: "pod-1" });
    await until(() => accepted.length === 2);
    swallow = true;
    const [id] = await addMany(1);
    await until(() => accepted.length === 3);
    expect(accepted[2]?.key).toBe(`${STREAM}:${id}`);
    expect(of("read_failed")).toHaveLength(1);
    await until(async () => (await length()) === 0);
  });

  it("depth: counts what is unprocessed, also where the server does not know", async () => {
    const ids = await addMany(5);
    await diedWith("dead", 2);
    const inlet = start({ accept: () => new Promise(() => {}), batchMax: 1, acceptTimeoutMs: 50_000 });
    await until(async () => (await pending()).length === 3);
    expect(await inlet.depth()).toMatchObject({ waiting: 2, pending: 3, unprocessed: 5, exact: true });
    // A deletion ahead of the group: Redis answers that the lag is unknown.
    await send("XDEL", STREAM, ids[3] as string);
    expect(await inlet.depth()).toMatchObject({ waiting: 1, pending: 3, unprocessed: 4, exact: true });
  });

  it("a stream that was deleted under it is made again", async () => {
    start();
    await until(() => of("started").length === 1);
    await send("DEL", STREAM);
    await addMany(2);
    await until(async () => accepted.length === 2 && (await length()) === 0);
  });

  it("refuses settings that cannot work, by name", () => {
    const fails = (over: Partial<InletOptions>) => () => start(over);
    expect(fails({ blockMs: 0 })).toThrow(/blockMs/);
    expect(fails({ acceptTimeoutMs: 60_000 })).toThrow(/acceptTimeoutMs/);
    expect(fails({ deadStream: STREAM })).toThrow(/deadStream/);
    expect(fails({ redis: { ...redis, cluster: true }, deadStream: "elsewhere" })).toThrow(/hash tag/);
  });

  it("AUD-9, AUD-15, EV-16: knows the seeds' names, batch and sweep", () => {
    expect(AUDIT_STREAM).toMatchObject({ stream: "audit-dlq", group: "audit-retry-workers", batchMax: 10, sweepMs: 30_000 });
    expect(Object.values(AUDIT_CLASS_STREAMS).map(({ stream, deadStream }) => [stream, deadStream])).toEqual([
      ["audit:dlq:events", "audit:dead-letter:events"],
      ["audit:dlq:notifications", "audit:dead-letter:notifications"],
    ]);
    expect(RECOVERY_STREAM).toMatchObject({
      stream: "m10:evaluate:stream",
      group: "m10:evaluate:group",
      deadStream: "m10:evaluate:dead-letter",
    });
  });

  it("DA-17: starts without a server, goes on after it was killed, and loses nothing", async () => {
    const own = await startRedis([...DURABLE, "--appendfsync", "always"]);
    const port = fromNodeRedis(createClient({ url: own.url }), { timeoutMs: 2_000 });
    await own.stop("SIGKILL");
    const inlet = start({ redis: port });
    try {
      await until(() => of("read_failed").length > 0);
      await own.start();
      for (let n = 0; n < 5; n++) await own.ask("XADD", STREAM, "*", "body", String(n));
      await until(() => accepted.length === 5);
      await own.stop("SIGKILL");
      await own.start();
      for (let n = 5; n < 10; n++) await own.ask("XADD", STREAM, "*", "body", String(n));
      await until(() => new Set(accepted.map(({ key }) => key)).size === 10);
      await until(async () => Number(await own.ask("XLEN", STREAM)) === 0);
    } finally {
      await inlet.stop({ timeoutMs: 500 });
      await port.close();
      await own.stop();
    }
  });
});
