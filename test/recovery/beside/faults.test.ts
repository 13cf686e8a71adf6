/**
 * Decision 0033 when things go wrong: PostgreSQL away at the start and later, two processes, clocks that differ, more dead letters than a
 * page, ids that the home gives no room, two primaries in one home, and kill -9 while dead letters are brought over and while they are executed.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createMakegood, type Makegood } from "../../../src/create.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { createIds } from "../../../src/platform/ids.ts";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { createRedisStore } from "../../../src/store/redis/index.ts";
import { newMessage } from "../../../src/testing/store-conformance/fixtures.ts";
import { topic } from "../../../src/topic/topic.ts";
import { databaseUrl, withClient } from "../../support/postgres.ts";
import { type Process, startScript } from "../../support/processes.ts";
import { freshPrefix } from "../../support/redis-store.ts";
import { startProxy, targetOf } from "../../support/tcp-proxy.ts";
import { ANN, ended, inPrimary, PATIENCE, redis, refuse, type Scene, scene, send, suggested, TOPIC } from "./scene.ts";

vi.setConfig({ testTimeout: 120_000 });
const CHILD = new URL("./beside-child.mjs", import.meta.url).pathname;
const MANY = 1_203;

let at: Scene;
beforeEach(async () => {
  at = await scene();
  at.receiver.answer = () => refuse("broken", "it is broken");
});
afterEach(() => at.close());

/** Dead letters from the start. */
const dead = (id: string, n: number) =>
  newMessage(id, {
    topic: TOPIC,
    key: `order-${n}`,
    payload: `{"n": ${n}}`,
    directTry: { code: "broken", error: "it is broken", rejected: true },
  });

const startChild = (): Promise<Process> =>
  redis().then(({ url }) => startScript(CHILD, { url: databaseUrl(), schema: at.schema, redis: url, prefix: at.prefix }));

const counted = (): Promise<{ mirrors: number; messages: number; occurrences: number }> =>
  withClient(async (client) => {
    const text = `select (select count(*)::int from "${at.schema}".recovery_mirror) as mirrors,
      (select count(*)::int from "${at.schema}".dead_letter d join "${at.schema}".recovery_mirror r on r.message_id = d.id) as messages,
      (select count(*)::int from "${at.schema}".recovery_occurrence) as occurrences`;
    return (await client.query(text)).rows[0];
  });

describe("recovery beside Redis, when things go wrong", () => {
  it("starts and delivers while PostgreSQL is away, says so, and takes in what died meanwhile when it is back", async () => {
    await using proxy = await startProxy(targetOf(databaseUrl()));
    proxy.refuse();
    const mg = await at.open({}, proxy.via(databaseUrl()));
    const said: string[] = [];
    mg.events.on((event) => event.type === "lifecycle" && event.what.startsWith("recovery_home") && said.push(event.what));
    mg.work();
    at.receiver.answer = (n) => (n < 2 ? refuse("broken", "it is broken") : undefined);
    const ids = await send(mg, 4);
    await vi.waitFor(async () => {
      expect((await inPrimary(mg, ids)).map(({ status }) => status)).toEqual(["dead", "dead", "delivered", "delivered"]);
    }, PATIENCE);
    await vi.waitFor(() => expect(mg.recoveryBeside()).toMatchObject({ reachable: false, error: expect.any(String) }), PATIENCE);
    expect(mg.findings()).toMatchObject([{ what: "recovery_home_away", severity: "degraded" }]);
    await expect(mg.recovery.stats()).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(mg.recovery.origin(ids[0] as string)).resolves.toBeNull();
    proxy.heal();
    await suggested(mg.recovery, "broken", 2);
    await vi.waitFor(() => expect(mg.recoveryBeside()).toMatchObject({ reachable: true, behind: 0 }), PATIENCE);
    proxy.refuse();
    proxy.resetAll();
    await send(mg, 1, 0);
    const [late] = await send(mg, 1, 9);
    await vi.waitFor(async () => expect((await mg.store.get(late as string))?.status).toBe("delivered"), PATIENCE);
    await vi.waitFor(() => expect(mg.recoveryBeside()?.reachable).toBe(false), PATIENCE);
    proxy.heal();
    await vi.waitFor(() => expect(mg.recoveryBeside()).toMatchObject({ reachable: true, error: null, behind: 0 }), PATIENCE);
    expect(mg.findings()).toEqual([]);
    const each = [...Array(2)].flatMap(() => ["recovery_home_away", "recovery_home_back"]);
    await vi.waitFor(() => expect(said, "each once").toEqual(each), PATIENCE);
  });

  it("after an outage each of two processes says that the home is back, and what still waits", async () => {
    await using proxy = await startProxy(targetOf(databaseUrl()));
    proxy.refuse();
    const both = [await at.open({}, proxy.via(databaseUrl())), await at.open({}, proxy.via(databaseUrl()))];
    for (const mg of both) mg.work();
    const all = async (expected: object) => {
      for (const mg of both) await vi.waitFor(() => expect(mg.recoveryBeside()).toMatchObject(expected), PATIENCE);
    };
    await all({ reachable: false, error: expect.any(String) });
    proxy.heal();
    await all({ reachable: true, error: null, behind: 0 });
    expect(both.map((mg) => mg.findings())).toEqual([[], []]);
    proxy.refuse();
    proxy.resetAll();
    await all({ reachable: false });
    await send(both[0] as Makegood, 3);
    await all({ reachable: false, behind: 3 });
    expect(both[1]?.findings()[0]?.reason).toContain("3 dead letters wait");
    proxy.heal();
    await all({ reachable: true, error: null, behind: 0 });
  });

  it("asks how a replay ended soon, also where the clock of the process is an hour before that of the home", async () => {
    const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + 3_600_000 };
    const mg = await at.open({ clock });
    mg.work();
    await send(mg, 1);
    const { candidateId } = await suggested(mg.recovery, "broken", 1);
    let tries = 0;
    at.receiver.answer = () =>
      tries++ === 0 ? { kind: "retry", code: "slow", error: "not yet", retryAfterMs: 1_500 } : undefined;
    await mg.recovery.update(candidateId, { ...ANN, selectedAction: "retry_exponential" });
    await mg.recovery.execute(candidateId, { ...ANN, reason: "mended" });
    await ended(mg.recovery, candidateId, "succeeded");
  });

  it("brings each of more dead letters than a page over once, from two processes at once, of other times too", async () => {
    const store = createRedisStore({ redis: (await redis()).url, prefix: at.prefix });
    const first = await at.open();
    const ids = createIds();
    const all = Array.from({ length: MANY }, (_, n) => dead(ids(), n));
    const others = ["0190", "01f0"].map((time, n) => dead(`${time}${ids().slice(4)}`, MANY + n));
    const total = MANY + others.length;
    await store.open();
    for (let from = 0; from < MANY; from += 500) await store.enqueue(all.slice(from, from + 500));
    await store.enqueue(others);
    const second = await at.open();
    for (const mg of [first, second]) mg.work();
    const { candidateId, groupId } = await vi.waitFor(() => suggested(first.recovery, "broken", total), { timeout: 60_000 });
    expect(await counted()).toEqual({ mirrors: total, messages: total, occurrences: total });
    at.receiver.answer = () => undefined;
    await second.recovery.update(candidateId, { ...ANN, selectedAction: "retry_exponential" });
    const redrive = { canary: 5, ratePerSecond: 1_000, confirm: total };
    await second.recovery.execute(candidateId, { ...ANN, reason: "mended", redrive });
    await vi.waitFor(() => ended(first.recovery, candidateId, "succeeded"), { timeout: 80_000 });
    expect(new Set(at.receiver.delivered).size, "each once").toBe(at.receiver.delivered.length);
    expect(at.receiver.delivered.length).toBe(total);
    expect((await first.recovery.group(groupId)).group.openMessages).toBe(0);
    await store.close();
  });

  it("does not replay by hand what is on its way to a fallback, also where it has another id in the home", async () => {
    const slow = { kind: "retry", code: "slow", error: "not yet", retryAfterMs: 3_600_000 } as const;
    const order = topic(TOPIC, { sink: async () => undefined, fallback: async () => slow });
    const mg = await at.open({ topics: [order] });
    const id = `0190${createIds()().slice(4)}`;
    await mg.store.enqueue([dead(id, 1)]);
    mg.work();
    const { candidateId } = await suggested(mg.recovery, "broken", 1);
    await mg.recovery.update(candidateId, { ...ANN, selectedAction: "fallback_model" });
    await mg.recovery.approve(candidateId, { ...ANN, reason: "the other one" });
    const { redriveId } = await mg.recovery.execute(candidateId, { ...ANN, reason: "the other one" });
    await vi.waitFor(async () => {
      const { data } = await mg.recovery.redriveItems(redriveId as string, { limit: 5 });
      expect(data).toMatchObject([{ carrierId: expect.any(String) }]);
    }, PATIENCE);
    await expect(mg.replay(id, { actor: "bob" })).rejects.toMatchObject({ code: "carried", detail: { id } });
    expect((await mg.replay(id, { actor: "bob", force: true })).status).toBe("pending");
  });

  it("two primaries do not share a home: the second one says so and touches nothing", async () => {
    const mg = await at.open();
    mg.work();
    await send(mg, 1);
    await suggested(mg.recovery, "broken", 1);
    const store = createRedisStore({ redis: (await redis()).url, prefix: freshPrefix() });
    const recoveryHome = createPostgresStore({ url: databaseUrl(), schema: at.schema, poolMax: 3 });
    await using other = await createMakegood({ store, recoveryHome, log: "silent", pollMs: 100 });
    other.work();
    await vi.waitFor(() => expect(other.recoveryBeside()?.error).toContain("belongs to another store"), PATIENCE);
    expect((await mg.recovery.groups({ open: true, limit: 5 })).data).toMatchObject([{ openMessages: 1 }]);
  });

  it("refuses a home that is none, and one beside PostgreSQL", async () => {
    const home = createPostgresStore({ url: databaseUrl(), schema: at.schema });
    const redisStore = createRedisStore({ redis: (await redis()).url, prefix: at.prefix });
    const wrong = { code: "invalid_config", message: expect.stringContaining("recoveryHome") };
    await expect(createMakegood({ store: home, recoveryHome: home, log: "silent" })).rejects.toMatchObject(wrong);
    await expect(createMakegood({ store: redisStore, recoveryHome: redisStore, log: "silent" })).rejects.toMatchObject(wrong);
  });

  it("kill -9 while dead letters are brought over and while they are executed: each is counted, replayed and learned once", async () => {
    const mg = await at.open();
    const ids = createIds();
    const all = Array.from({ length: 400 }, (_, n) => dead(ids(), n));
    await mg.store.enqueue(all);
    // Each child is killed a little later than the one before.
    for (const mirrors of [50, 200]) {
      const child = await startChild();
      await vi.waitFor(async () => expect((await counted()).mirrors).toBeGreaterThanOrEqual(mirrors), {
        ...PATIENCE,
        interval: 5,
      });
      await child.end("SIGKILL");
    }
    const third = await startChild();
    const { candidateId } = await vi.waitFor(() => suggested(mg.recovery, "broken", 400), { timeout: 80_000 });
    expect(await counted()).toEqual({ mirrors: 400, messages: 400, occurrences: 400 });
    await mg.recovery.update(candidateId, { ...ANN, selectedAction: "retry_exponential" });
    const redrive = { canary: 5, ratePerSecond: 200, rampFrom: 200 };
    await mg.recovery.execute(candidateId, { ...ANN, reason: "mended", redrive });
    await third.fact(({ delivered }) => Number(delivered) >= 50, 40_000);
    await third.end("SIGKILL");
    const fourth = await startChild();
    await vi.waitFor(() => ended(mg.recovery, candidateId, "succeeded"), { timeout: 90_000 });
    const found = await inPrimary(
      mg,
      all.map(({ id }) => id),
    );
    expect(found.map(({ status, generation }) => `${status} ${generation}`)).toEqual(all.map(() => "delivered 1"));
    const { candidate } = await mg.recovery.candidate(candidateId);
    expect(JSON.parse(candidate.executionResult as string)).toMatchObject({ counts: { healed: 400, failed: 0 } });
    await fourth.end("SIGTERM");
  });
});
