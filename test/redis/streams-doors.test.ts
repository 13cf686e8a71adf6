/**
 * The seeds' streams as the presets open them in a process of one's own: audit and recovery, both doors, with the seeds' names, and
 * what becomes of a stream that is too long, a Redis that is away and a topic that nobody has declared yet.
 */
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, type Makegood, MakegoodError, topic } from "../../src/index.ts";
import { decide } from "../../src/message/decide.ts";
import { retryPolicy } from "../../src/message/retry-policy.ts";
import { systemRandom } from "../../src/platform/random.ts";
import {
  type AuditStreamOptions,
  auditTopics,
  RECOVERY_TOPIC,
  startAuditStream,
  startRecoveryStream,
} from "../../src/presets/index.ts";
import { EVALUATE_DEFINITION } from "../../src/recovery/topics.ts";
import { createMemoryAudit } from "../../src/store/memory/audit.ts";
import { fromNodeRedis, type RedisPort } from "../../src/store/redis/port.ts";
import { type StreamDoors, type StreamNotice, startStreamDoors } from "../../src/store/redis/streams/doors.ts";
import { envelope } from "../audit/records.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { until } from "../unit/delivery/support.ts";

const DEAD = "audit:dead-letter";

/** The id of an entry that was added two minutes ago: its first wait is over (AUD-19). */
const WAITED = `${Date.now() - 120_000}-*`;

describe("the seeds' streams", () => {
  let server: RedisServer;
  let redis: RedisPort;
  let mg: Makegood;
  let audit: ReturnType<typeof createMemoryAudit>;
  let notices: StreamNotice[];
  const opened: StreamDoors[] = [];
  const send = (...args: string[]) => redis.send(null, args);
  const of = <W extends StreamNotice["what"]>(what: W) =>
    notices.filter((notice): notice is Extract<StreamNotice, { what: W }> => notice.what === what);
  const onNotice = (notice: StreamNotice): void => void notices.push(notice);
  const keep = (doors: StreamDoors): StreamDoors => {
    opened.push(doors);
    return doors;
  };
  const openAudit = (over: Partial<AuditStreamOptions> = {}) => keep(startAuditStream({ mg, redis, onNotice, ...over }));
  const addRecord = (type: string, data: string) =>
    send("XADD", "audit-dlq", WAITED, "audit_type", type, "audit_data", data, "created_at", "1767225600", "retry_count", "0");
  const length = async (stream: string): Promise<number> => Number(await send("XLEN", stream));
  const published = async (): Promise<Record<string, string>[]> =>
    ((await send("XRANGE", DEAD, "-", "+")) as [string, string[]][]).map(([, flat]) =>
      Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] as string]] : []))),
    );

  beforeAll(async () => {
    server = await startRedis();
    redis = fromNodeRedis(createClient({ url: server.url }));
  });
  beforeEach(async () => {
    notices = [];
    await send("FLUSHALL");
    audit = createMemoryAudit();
    // The doors alone: an engine of this process would evaluate what comes in.
    mg = await createMakegood({ store: createMemoryStore(), topics: auditTopics(audit), pollMs: 10, recovery: false });
    mg.work();
  });
  afterEach(async () => {
    for (const doors of opened.splice(0)) await doors.stop({ timeoutMs: 1_000 });
    await mg.close({ drainMs: 0 });
  });
  afterAll(async () => {
    await redis.close();
    await server.stop();
  });

  it("audit: a record of the stream is stored with its text; one that does not fit is a dead letter, at once on the seed's stream", async () => {
    const text = JSON.stringify(envelope("e-1", "ai-decisions"), null, 1);
    await addRecord("ai_analysis", text);
    const doors = openAudit();
    await until(async () => (await audit.get("e-1"))?.payload === text);
    await addRecord("nobody", '{"kept":true}');
    // Sooner than the outlet's own look every ten seconds: the death itself wakes it.
    await until(async () => (await length(DEAD)) === 1, 5_000);
    const [record] = await published();
    expect(record).toMatchObject({ topic: "audit/quarantine", last_code: "invalid_record", attempts: "1" });
    expect(JSON.parse(record?.payload as string)).toMatchObject({ audit_type: "nobody", record: '{"kept":true}' });
    await until(async () => (await length("audit-dlq")) === 0);
    expect(await doors.depth()).toMatchObject({ unprocessed: 0 });
    expect(((await send("XINFO", "GROUPS", "audit-dlq")) as unknown[][])[0]).toContain("audit-retry-workers");
  });

  it("AUD-19, N13: an entry waits before its first attempt, has six of them, and uses the 24 hours", async () => {
    let tries = 0;
    const failing = { ...audit, write: () => Promise.reject(new Error(`failure ${++tries}`)) };
    const store = createMemoryStore();
    const other = await createMakegood({ store, topics: auditTopics(failing), pollMs: 10, recovery: false });
    other.work();
    const random = { ...systemRandom, next: () => 0.999_999 };
    openAudit({ mg: other, random });
    await send("XADD", "audit-dlq", "*", "audit_type", "executions", "audit_data", JSON.stringify(envelope("e-1")));
    await until(async () => (await store.list({ limit: 1 })).data.length === 1);
    const [message] = (await store.list({ limit: 1 })).data;
    const waitMs = Number(message?.nextAttemptAt) - Date.now();
    expect(waitMs).toBeGreaterThan(45_000);
    expect(waitMs).toBeLessThanOrEqual(60_000);
    expect([message?.attempts, tries]).toEqual([0, 0]);
    // The same entry, its waits gone by: one attempt each, and the waits in between are those of the table.
    const rules = { policy: retryPolicy({ policy: "audit", jitter: "none" })!, ordering: "key", onUnknown: "retry" } as const;
    const failed = { kind: "retry", code: "write_failed", error: "x" } as const;
    const settled = [1, 2, 3, 4, 5, 6].map((attempt) =>
      decide({ attempt, base: 0, handedDown: false, suspicion: 0 }, failed, rules, 0),
    );
    const minutes = settled.map((one) => (one.kind === "retry" ? one.delayMs / 60_000 : one.kind));
    expect(minutes).toEqual([5, 15, 60, 240, 1_440, "dead"]);
    await other.close({ drainMs: 0 });
  });

  it("DA-12: two pods with one name are two consumers, and the group's name is the caller's", async () => {
    const both = [1, 2].map(() => openAudit({ consumerName: "audit-retry-worker-0", group: "data-storage-retry-workers" }));
    await until(() => of("started").length === 2);
    const names = new Set(both.map(({ consumer }) => consumer));
    expect(names.size).toBe(2);
    for (const name of names) expect(name).toMatch(/^audit-retry-worker-0-[0-9a-f]{16}$/);
    expect(new Set(of("started").map(({ consumer }) => consumer))).toEqual(names);
    expect(((await send("XINFO", "GROUPS", "audit-dlq")) as unknown[][])[0]).toContain("data-storage-retry-workers");
  });

  it("DA-1, DR-11: a stream beyond its length is said to be too long, and loses nothing", async () => {
    for (let n = 0; n < 30; n++) await send("XADD", "m10:evaluate:stream", "*", "candidate_id", String(n));
    const arrived: unknown[] = [];
    const evaluate = topic<Record<string, string>>(RECOVERY_TOPIC, { sink: (payload) => void arrived.push(payload) });
    const other = await createMakegood({ store: createMemoryStore(), topics: [evaluate], pollMs: 10 });
    other.work();
    const settings = { lengthMax: 10, reclaimIdleMs: 1_000 };
    keep(startRecoveryStream({ mg: other, redis, onNotice, ...settings }));
    await until(() => arrived.length === 30);
    const candidates = arrived.map((payload) => (payload as { candidate_id: string }).candidate_id);
    expect(new Set(candidates)).toEqual(new Set(Array.from({ length: 30 }, (_, n) => String(n))));
    const told = of("too_long");
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({ lengthMax: 10 });
    expect(told[0]?.length).toBeGreaterThan(10);
    expect(await length("m10:evaluate:dead-letter")).toBe(0);
    for (const doors of opened.splice(0)) await doors.stop();
    await other.close();
  });

  it("a stream is said to be too long once, and again after it was short in between", async () => {
    let closed = true as boolean;
    const addMany = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n++) await send("XADD", "s", "*", "n", String(n));
    };
    await addMany(4);
    let looks = 0;
    const counting: RedisPort = {
      ...redis,
      send(key, args, options) {
        if (args[0] === "XLEN") looks++;
        return redis.send(key, args, options);
      },
    };
    const doors = startStreamDoors({
      ...{ redis: counting, store: mg.store, stream: "s", group: "g", topics: [], blockMs: 20, sweepMs: 20, lengthMax: 3 },
      read: ({ fields }) => ({ topic: "a/b", payloadText: JSON.stringify(fields) }),
      accept: () => (closed ? Promise.reject(new MakegoodError("store_unavailable", "away")) : Promise.resolve()),
      onNotice,
    });
    keep(doors);
    await until(() => looks >= 5);
    expect(of("too_long")).toEqual([{ what: "too_long", length: 4, unprocessed: 4, lengthMax: 3 }]);
    closed = false;
    await until(async () => (await length("s")) === 0);
    const seen = looks;
    await until(() => looks >= seen + 2);
    closed = true;
    await addMany(5);
    await until(() => of("too_long").length === 2);
  });

  it("recovery: an entry of a topic that nobody declared waits in the store, and the evaluating process may declare it later", async () => {
    await send("XADD", "m10:evaluate:stream", "*", "candidate_id", "c-1", "__proto__", "x", "priority", "3");
    keep(startRecoveryStream({ mg, redis, onNotice }));
    await until(async () => (await mg.store.list({ topic: RECOVERY_TOPIC, limit: 10 })).data.length === 1);
    const [waiting] = (await mg.store.list({ topic: RECOVERY_TOPIC, limit: 10 })).data;
    expect(waiting).toMatchObject({ status: "pending", payload: '{"candidate_id":"c-1","__proto__":"x","priority":"3"}' });
    // As the recovery engine declares it: which of them came first makes no difference.
    expect(await mg.store.topics.get(RECOVERY_TOPIC)).toMatchObject(EVALUATE_DEFINITION);
    const put = await mg.store.topics.put(topic(RECOVERY_TOPIC, { sink: { kind: "notify" } }).definition, "api");
    expect(put).toMatchObject({ sink: { kind: "notify" } });
    // A second process does not take that away again.
    await using second = startRecoveryStream({ mg, redis });
    await until(async () => (await second.depth()) !== null);
    expect(await mg.store.topics.get(RECOVERY_TOPIC)).toMatchObject({ sink: { kind: "notify" } });
    await until(async () => (await mg.store.get(waiting?.id as string))?.status === "delivered");
  });

  it("CON-24, DR-27: the priority of a recovery entry is its message's, and what is none is 0", async () => {
    const given = ["3", "-7", "100000", "high", "", "1.5", null];
    for (const one of given) {
      await send("XADD", "m10:evaluate:stream", "*", "candidate_id", "c", ...(one === null ? [] : ["priority", one]));
    }
    keep(startRecoveryStream({ mg, redis, onNotice }));
    await until(async () => (await mg.store.list({ topic: RECOVERY_TOPIC, limit: 10 })).data.length === given.length);
    const { data } = await mg.store.list({ topic: RECOVERY_TOPIC, limit: 10 });
    const got = data.map(({ payload, priority }) => [(JSON.parse(payload) as { priority?: string }).priority ?? null, priority]);
    expect(new Map(got as [string | null, number][])).toEqual(
      new Map([
        ["3", 3],
        ["-7", -7],
        ["100000", 100],
        ["high", 0],
        ["", 0],
        ["1.5", 0],
        [null, 0],
      ]),
    );
  });

  it("DA-17: starts without a server, says so, and reads once it is there", async () => {
    const own = await startRedis();
    await own.stop("SIGKILL");
    const doors = openAudit({ redis: own.url });
    await until(() => of("open_failed").length > 0);
    expect(await doors.depth()).toBeNull();
    await own.start();
    const text = JSON.stringify(envelope("e-1"));
    await own.ask("XADD", "audit-dlq", WAITED, "audit_type", "executions", "audit_data", text);
    await until(async () => (await audit.get("e-1")) !== null);
    await doors.stop();
    // Nothing of a door that was stopped is left: the name is gone from the group.
    expect(await own.ask("XINFO", "CONSUMERS", "audit-dlq", "audit-retry-workers")).toEqual([]);
    await own.stop();
  });

  it("DA-2, CON-19: a Redis that evicts or does not persist is told, and read all the same", async () => {
    openAudit();
    await until(() => of("started").length === 1);
    const own = await startRedis(["--appendonly", "no", "--maxmemory-policy", "allkeys-lru"]);
    const doors = openAudit({ redis: own.url });
    const text = JSON.stringify(envelope("e-1"));
    await own.ask("XADD", "audit-dlq", WAITED, "audit_type", "executions", "audit_data", text);
    await until(async () => (await audit.get("e-1")) !== null);
    await until(() => of("not_durable").length > 0);
    // Of one of the two: the other Redis is as it should be.
    expect(of("not_durable")).toEqual([{ what: "not_durable", appendonly: "failed", policies: ["allkeys-lru"] }]);
    await doors.stop();
    await own.stop();
  });

  it("stops at once while Redis is away, and does not open afterwards", async () => {
    const own = await startRedis();
    await own.stop("SIGKILL");
    const doors = openAudit({ redis: own.url });
    await until(() => of("open_failed").length > 0);
    await doors.stop({ timeoutMs: 2_000 });
    await own.start();
    expect(await own.ask("EXISTS", "audit-dlq")).toBe(0);
    await own.stop();
  });

  it("CON-27: a pair of limit and backoff that cannot work is refused before Redis is asked", () => {
    const nowhere = "redis://127.0.0.1:1";
    const start = (over: object) => () => startRecoveryStream({ mg, redis: nowhere, ...over });
    expect(start({ reclaimBaseMs: 5_000, reclaimIdleMs: 1_000, reclaimIdleMsMax: 2_000 })).toThrow(
      /reclaimIdleMsMax.*reclaimBaseMs/,
    );
    expect(start({ reclaimsMax: -1 })).toThrow(/reclaimsMax/);
    const common = { stream: "s", group: "g", redis: nowhere, store: mg.store, topics: [] };
    const read = () => ({ topic: "a/b", payloadText: "{}" });
    expect(() => startStreamDoors({ ...common, read, accept: async () => {}, deadStream: "s" })).toThrow(/deadStream/);
  });
});
