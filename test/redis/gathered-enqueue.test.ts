/**
 * Calls that travel in one script: each is accepted or refused by itself, whatever stands beside it; names may hold any character
 * that a message may have; and a message costs a fixed number of commands, not one more for each thing that is known about it.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Accepted, NewMessage } from "../../src/message/message.ts";
import { definition, KEYED, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { claimAll, codeOf, conserved, deliverAll, dump, message, type RedisScene, redisScene } from "../faults/redis-scene.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";

let server: RedisServer;
let scene: RedisScene;

beforeAll(async () => {
  server = await startRedis();
});
afterEach(() => scene.close());
afterAll(() => server.stop());

const fresh = async () => {
  scene = await redisScene(server);
  await scene.store.topics.put(definition(KEYED, "key"), "code");
  return scene.store;
};

/** How often the server was asked to run a script. */
const scriptsRun = async () =>
  Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await scene.port.send(null, ["INFO", "commandstats"])))?.[1] ?? 0);

/** All commands so far, those inside scripts included. */
const commandsRun = async () => {
  const stats = String(await scene.port.send(null, ["INFO", "commandstats"]));
  return [...stats.matchAll(/^cmdstat_(?!info)\S+?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0);
};

const kinds = (results: readonly Accepted[]) => results.map(({ kind }) => kind);

describe("calls that travel together", () => {
  it("each is accepted or refused by itself: an unknown topic, a conflict in a batch, a repeat, a key that another call of the same moment took", async () => {
    const store = await fresh();
    const known = message({ key: "known", payload: '"first"' });
    await store.enqueue([known]);
    await store.topics.put(definition("test/plain2"), "code");
    const before = await scriptsRun();
    const repeat = message({ payload: '"same"' });
    const calls: Promise<unknown>[] = [
      store.enqueue([message()]),
      store.enqueue([message({ topic: "test/nobody" })]),
      store.enqueue([message({ key: "fine" }), message({ key: "known", payload: '"other"' }), message()]),
      store.enqueue([message({ key: "a" }), message({ key: "known", payload: '"other"' }), message({ topic: "test/plain2" })], {
        atomic: "each",
      }),
      store.enqueue([message({ key: "a", payload: '"other"' })]),
      store.enqueue([repeat]),
      store.enqueue([repeat, message({ topic: KEYED, orderingKey: "o" })]),
      store.enqueue([message({ key: "known", payload: '"first"' })]),
      // Refused as a whole above, so its key is free for this one.
      store.enqueue([message({ key: "fine", payload: '"mine"' })]),
    ];
    const done = await Promise.allSettled(calls);
    const told = done.map((one) =>
      one.status === "fulfilled" ? kinds(one.value as Accepted[]) : ((one.reason as { code: string }).code as string),
    );
    expect(told).toEqual([
      ["accepted"],
      "unknown_topic",
      ["accepted", "conflict", "accepted"],
      ["accepted", "conflict", "accepted"],
      ["conflict"],
      ["accepted"],
      ["accepted", "accepted"],
      ["duplicate"],
      ["accepted"],
    ]);
    // One for all of them, and one more that looked whether the data is still the same because of the unknown topic.
    expect((await scriptsRun()) - before).toBeLessThanOrEqual(4);
    // The known one, the first call, two of `each`, the repeat, the ordered one, and the last.
    expect(await conserved(scene)).toBe(7);
    expect(await deliverAll(store)).toHaveLength(7);
  });

  it("of one topic and several lanes: each is answered by itself, whatever became of those beside it", async () => {
    const store = await fresh();
    const [known, held] = [message({ payload: "1" }), message({ key: "k", tenantId: "a", payload: "1" })];
    await Promise.all([store.enqueue([known]), store.enqueue([held])]);
    const before = await scriptsRun();
    const [fresh1, fresh2] = [message({ tenantId: "b", priority: 3 }), message({ key: "k", tenantId: "b", payload: "2" })];
    const fresh3 = message({ key: "k2", tenantId: "a", priority: 3 });
    const given = [
      fresh1,
      { ...known, payload: "2" },
      message({ key: "k", tenantId: "a", payload: "2" }),
      fresh2,
      known,
      message({ key: "k", tenantId: "a", payload: "1" }),
      fresh3,
    ];
    const results = await Promise.all(given.map(async (one) => (await store.enqueue([one]))[0]));
    expect((await scriptsRun()) - before).toBe(1);
    expect(results).toEqual([
      { kind: "accepted", id: fresh1.id },
      { kind: "conflict", id: known.id },
      { kind: "conflict", id: held.id },
      { kind: "accepted", id: fresh2.id },
      { kind: "accepted", id: known.id },
      { kind: "duplicate", id: held.id },
      { kind: "accepted", id: fresh3.id },
    ]);
    expect(await store.get(fresh3.id)).toMatchObject(fixed(fresh3));
    expect(await conserved(scene)).toBe(5);
    const all = [known, held, fresh1, fresh2, fresh3].map(({ id }) => id);
    expect(new Set(await deliverAll(store))).toEqual(new Set(all));
  });

  it("of one topic that is not there: all are refused, and nothing is written", async () => {
    const store = await fresh();
    const before = await dump(scene);
    const calls = Array.from({ length: 3 }, (_, i) => store.enqueue([message({ topic: "test/nobody", tenantId: `t${i}` })]));
    expect(await Promise.all(calls.map(codeOf))).toEqual(["unknown_topic", "unknown_topic", "unknown_topic"]);
    expect(await dump(scene)).toEqual(before);
  });

  for (const name of ["lanes", "dedupe", "accepted", `l:u0:0:${PLAIN}:b`, `s:p:${PLAIN}`]) {
    it(`fault 39: a key of the wrong type at ${name}: all are refused, and nothing is written`, async () => {
      const store = await fresh();
      const key = `{${scene.prefix}}:${name}`;
      await server.ask("SET", key, "planted");
      const before = await dump(scene);
      const given = ["a", "b", "c"].map((tenantId) => message({ tenantId, key: "k" }));
      const enqueue = () => Promise.all(given.map((one) => codeOf(store.enqueue([one]))));
      expect(new Set(await enqueue())).toEqual(new Set(["store_unavailable"]));
      expect(await dump(scene)).toEqual(before);
      await server.ask("DEL", key);
      expect(new Set(await enqueue())).toEqual(new Set(["accepted"]));
      expect(await deliverAll(store)).toHaveLength(3);
    });
  }

  it("callers that come back together travel as two scripts that are answered one after the other", async () => {
    const store = await fresh();
    const before = await scriptsRun();
    const answered: number[] = [];
    const caller = async (_: unknown, i: number) => {
      await store.enqueue([message()]);
      answered.push(i);
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    // The half that is left is halved again when the first one was answered meanwhile.
    expect([2, 3]).toContain((await scriptsRun()) - before);
    expect(answered).toEqual(Array.from({ length: 16 }, (_, i) => i));
  });

  it("a thousand callers are answered one by one, from far fewer scripts", async () => {
    const store = await fresh();
    const before = await scriptsRun();
    const given = Array.from({ length: 1_000 }, (_, i) => message({ key: `k${i % 900}`, payload: "1" }));
    const results = await Promise.all(given.map(async (one) => (await store.enqueue([one]))[0] as Accepted));
    expect((await scriptsRun()) - before).toBeLessThan(20);
    expect(results.filter(({ kind }) => kind === "duplicate")).toHaveLength(100);
    results.forEach(({ kind, id }, i) => {
      expect(id).toBe(kind === "accepted" ? given[i]?.id : given[i - 900]?.id);
    });
    expect(await conserved(scene)).toBe(900);
  });
});

describe("a call by itself", () => {
  it("is answered as it would be among others", async () => {
    const store = await fresh();
    const first = message({ key: "k", payload: "1" });
    const one = async (given: NewMessage) => (await store.enqueue([given]))[0];
    expect(await one(first)).toEqual({ kind: "accepted", id: first.id });
    expect(await one(first)).toEqual({ kind: "accepted", id: first.id });
    expect(await one({ ...first, payload: "2" })).toEqual({ kind: "conflict", id: first.id });
    expect(await one(message({ key: "k", payload: "1" }))).toEqual({ kind: "duplicate", id: first.id });
    expect(await one(message({ key: "k", payload: "2" }))).toEqual({ kind: "conflict", id: first.id });
    expect(await one(message({ key: "k", tenantId: "t", payload: "2" }))).toMatchObject({ kind: "accepted" });
    expect(await codeOf(one(message({ topic: "test/nobody" })))).toBe("unknown_topic");
    expect(await conserved(scene)).toBe(2);
    expect(await deliverAll(store)).toHaveLength(2);
  });

  for (const name of ["lanes", "dedupe", "accepted", `l:u0:0:${PLAIN}:`, `s:p:${PLAIN}`, "m"]) {
    it(`fault 39: a key of the wrong type at ${name}: refused, and nothing is written`, async () => {
      const store = await fresh();
      const one = message({ key: "k" });
      const key = `{${scene.prefix}}:${name === "m" ? `m:${one.id}` : name}`;
      await server.ask("SET", key, "planted");
      const before = await dump(scene);
      expect(await codeOf(store.enqueue([one]))).toBe("store_unavailable");
      expect(await dump(scene)).toEqual(before);
      await server.ask("DEL", key);
      expect(await codeOf(store.enqueue([one]))).toBe("accepted");
      expect(await deliverAll(store)).toEqual([one.id]);
    });
  }
});

type Fixed = Pick<
  NewMessage,
  "id" | "topic" | "tenantId" | "key" | "orderingKey" | "priority" | "traceparent" | "schemaVersion" | "payload"
>;

function fixed({ id, topic, tenantId, key, orderingKey, priority, traceparent, schemaVersion, payload }: Fixed): Fixed {
  return { id, topic, tenantId, key, orderingKey, priority, traceparent, schemaVersion, payload };
}

const byId = (a: Fixed, b: Fixed): number => (a.id < b.id ? -1 : 1);

describe("names", () => {
  const odd = ["a|b", "a:b", "{x}", "ü€𝄞", "\\n", '"', "*[?", " "];

  it("come back as they were given, are found by list, and their keys are free again when the message is gone", async () => {
    const store = await fresh();
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const given = odd.flatMap((name): NewMessage[] => [
      message({ tenantId: name, key: name, priority: -5, traceparent, schemaVersion: 2 }),
      message({ tenantId: name, topic: KEYED, orderingKey: name, key: name }),
    ]);
    await store.enqueue(given);
    for (const one of given) expect(await store.get(one.id)).toMatchObject(fixed(one));
    for (const name of odd) {
      const byTenant = await store.list({ tenantId: name, limit: 10 });
      const byKey = await store.list({ key: name, topic: PLAIN, limit: 10 });
      expect([byTenant.data.length, byKey.data.length]).toEqual([2, 1]);
    }
    const claimed = await claimAll(store);
    expect(claimed.map(fixed).sort(byId)).toEqual(given.map(fixed).sort(byId));
    const settlement = { kind: "delivered", outcome: "delivered" } as const;
    await store.settle(claimed.map(({ id, claim, attempt }) => ({ id, claim, attempt, durationMs: 1, settlement })));
    const repeats = () => given.map(({ id: _, ...fields }) => message(fields));
    expect(new Set(kinds(await store.enqueue(repeats())))).toEqual(new Set(["duplicate"]));
    await store.prune({ keptMs: 0, limit: 100, now: new Date(Date.now() + 1_000) });
    expect(new Set(kinds(await store.enqueue(repeats())))).toEqual(new Set(["accepted"]));
    await conserved(scene);
  });
});

describe("DF-22: what a message costs", () => {
  it("one command to enqueue, two to claim, two to settle, and some for the whole batch", async () => {
    const store = await fresh();
    const batch = Array.from({ length: 200 }, (_, i) => message({ key: `k${i}`, tenantId: `t${i % 4}` }));
    const cost = async (work: () => Promise<unknown>) => {
      const before = await commandsRun();
      await work();
      return (await commandsRun()) - before;
    };
    const whole = 60;
    expect(await cost(() => store.enqueue(batch))).toBeLessThanOrEqual(batch.length + whole);
    let claimed: Awaited<ReturnType<typeof claimAll>> = [];
    const claim = async () => {
      claimed = await claimAll(store);
    };
    expect(await cost(claim)).toBeLessThanOrEqual(2 * batch.length + whole);
    expect(claimed).toHaveLength(batch.length);
    const settlement = { kind: "delivered", outcome: "delivered" } as const;
    const settle = () =>
      store.settle(claimed.map(({ id, claim: own, attempt }) => ({ id, claim: own, attempt, durationMs: 1, settlement })));
    expect(await cost(settle)).toBeLessThanOrEqual(2 * batch.length + whole);
    expect(await codeOf(store.check())).toBe("accepted");
    await conserved(scene);
  });
});

describe("a settle", () => {
  it("I4: of several leases at once, some lost, some twice, is answered in the order given", async () => {
    const store = await fresh();
    await store.enqueue(Array.from({ length: 6 }, () => message()));
    const lane = `u0:0:${PLAIN}:`;
    const take = () => store.claim({ owner: "w", leaseMs: 30_000, lanes: [{ lane, limit: 2 }] });
    const [a, b, c] = [await take(), await take(), await take()];
    const settlement = { kind: "delivered", outcome: "delivered" } as const;
    const of = ({ id, claim, attempt }: (typeof a)[number]) => ({ id, claim, attempt, durationMs: 1, settlement });
    const stale = (one: (typeof a)[number]) => ({ ...of(one), claim: { ...one.claim, token: "stale" } });
    const [a1, a2, b1, b2, c1, c2] = [...a, ...b, ...c] as [never, never, never, never, never, never];
    const given = [of(b1), of(a1), stale(c1), of(a1), { ...of(b2), attempt: 9 }, of(c2), of(a2)];
    expect(await store.settle(given)).toEqual(["settled", "settled", "lost", "lost", "lost", "settled", "settled"]);
    expect(await store.settle([of(b2), of(c1)])).toEqual(["settled", "settled"]);
    expect(await scene.port.send("x", ["ZCARD", `{${scene.prefix}}:leased`])).toBe(0);
    await conserved(scene);
  });
});
