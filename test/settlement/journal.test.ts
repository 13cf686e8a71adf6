/**
 * The journal below the store: what Redis or a kernel store does not take is on disk, survives the client, is replayed from there with its
 * attempts counted, and moves up by put-if-absent when the store is back (CON-7, CON-8, DF-11, DF-12).
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MakegoodError } from "../../src/message/errors.ts";
import { createSettlementClient } from "../../src/presets/settlement/client.ts";
import type { FinalizeRequest } from "../../src/presets/settlement/request.ts";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { createRedisDLQStore } from "../../src/store/redis/dlq-port/redis-dlq-store.ts";
import type { Store } from "../../src/store/store.ts";
import { freshDirectory } from "../journal/support.ts";
import { until } from "../support/processes.ts";
import { type Billing, startBilling, testSigner } from "./billing.ts";
import { type RedisServer, startRedis } from "./redis.ts";
import { keptLog, request, sceneOf, TEN_MINUTES } from "./scene.ts";

let redis: RedisServer;
let billing: Billing;
beforeAll(async () => {
  [redis, billing] = await Promise.all([startRedis(), startBilling()]);
});
afterAll(async () => {
  await billing[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});
beforeEach(() => billing.answer({ status: 503 }));

let aheadMs = 0;
const storeOf = () => createRedisDLQStore(redis.connect(), { now: () => Date.now() + aheadMs });

/** What is on disk: reservation and state, by any process. */
async function onDisk(directory: string): Promise<string[]> {
  const { entries } = await readJournal({ directory });
  return inOrder(entries.map(({ entry, state }) => `${entry?.message.key} ${state}`));
}
const inOrder = (texts: readonly string[]): string[] => texts.toSorted((a, b) => (a < b ? -1 : 1));
const waiting = (given: readonly FinalizeRequest[]): string[] => inOrder(given.map((one) => `${one.reservation_id} waiting`));

describe("journalDir, on the Redis port", () => {
  it("DF-11, CON-8: Redis killed: on disk, found by the next client, moved up when it is back, and never over what is there", async () => {
    const directory = await freshDirectory();
    const given = [request(), request()] as const;
    {
      await using first = sceneOf(billing, { dlqStore: storeOf(), journalDir: directory });
      await first.client.ready();
      const above = request();
      expect(await first.client.finalize(above)).toMatchObject({ stored: "redis" });
      expect(await onDisk(directory)).toEqual([]);
      await redis.kill();
      for (const one of given) {
        expect(await first.client.finalize(one)).toMatchObject({ status: "dlq", stored: "journal", survives: "power-loss" });
      }
      expect(first.client.isDurable()).toBe(true);
      expect(first.kept.of("degraded")).toMatchObject([{ from: "redis", to: "journal" }, { to: "journal" }]);
      expect(first.kept.of("DLQ: entry created").map(({ level, store }) => [level, store])).toEqual([
        ["warn", "redis"],
        ["warn", "journal"],
        ["warn", "journal"],
      ]);
      // DF-16: told again, it is there once.
      expect(await first.client.finalize(given[0])).toMatchObject({ stored: "journal" });
      // DF-17: the first stands, the second is kept for a person.
      expect(await first.client.finalize({ ...given[0], actual_cost_micro: "2" })).toMatchObject({ stored: "journal" });
      expect(first.kept.of("conflict")).toHaveLength(1);
    }
    const inConflict = (await onDisk(directory)).filter((one) => one.startsWith("conflict-"));
    expect(inConflict).toHaveLength(1);
    expect(await onDisk(directory)).toEqual(inOrder([...waiting(given), ...inConflict]));

    await redis.restart();
    const store = storeOf();
    // What Redis knows by now, with more attempts than the journal knows of.
    await store.put({ ...given[1], reason: "first", response_status: null, attempt_count: 4 }, { delayMs: 3_600_000 });
    await using second = sceneOf(billing, { dlqStore: store, journalDir: directory });
    await second.client.ready();
    await until("moved up", async () => {
      await second.client.replayDeadLetters();
      return (await onDisk(directory)).every((one) => one.endsWith("quarantined"));
    });
    expect(await store.listQuarantine()).toMatchObject([
      { reservation_id: given[0].reservation_id, fields: { actual_cost_micro: "2" } },
    ]);
    expect(await store.get(given[0].reservation_id)).toMatchObject({ ...given[0], attempt_count: 1 });
    expect(await store.get(given[1].reservation_id)).toMatchObject({ attempt_count: 4, reason: "first" });
    billing.answer("honest");
    aheadMs += 2 * 3_600_000;
    await until("settled", async () => {
      await second.client.replayDeadLetters();
      return (await second.client.getDLQSize()) === 0;
    });
    expect(given.map(({ reservation_id: id }) => [billing.ledger.get(id)?.amount, billing.effectsOf(id)])).toEqual(
      given.map(({ actual_cost_micro }) => [actual_cost_micro, 1]),
    );
  });

  it("DF-12, INV-5: replayed from disk while Redis stays away; attempts go on where the client before stopped", async () => {
    const directory = await freshDirectory();
    const store = storeOf();
    await redis.kill();
    const [settled, failing, invalid] = [request(), request(), request({ actual_cost_micro: "x" })];
    {
      await using first = sceneOf(billing, { dlqStore: store, journalDir: directory, maxRetries: 2 });
      for (const one of [settled, failing, invalid]) {
        expect(await first.client.finalize(one)).toMatchObject({ stored: "journal" });
      }
      billing.answer(({ reservationId }) => (reservationId === settled.reservation_id ? "honest" : { status: 500 }));
      first.clock.move(TEN_MINUTES);
      expect(await first.client.replayDeadLetters()).toEqual({ replayed: 2, succeeded: 1, failed: 1, terminal: 0 });
      expect(await onDisk(directory)).toHaveLength(2);
    }
    {
      await using second = sceneOf(billing, { dlqStore: store, journalDir: directory, maxRetries: 2 });
      second.clock.move(2 * TEN_MINUTES);
      expect(await second.client.replayDeadLetters()).toEqual({ replayed: 1, succeeded: 0, failed: 0, terminal: 1 });
    }
    expect(billing.callsOf(failing.reservation_id)).toHaveLength(3);
    await redis.restart();
    await using third = sceneOf(billing, { dlqStore: store, journalDir: directory });
    third.clock.move(3 * TEN_MINUTES);
    await until("moved up", async () => {
      await third.client.replayDeadLetters();
      return (await onDisk(directory)).length === 0;
    });
    const terminal = await store.listTerminal();
    expect(inOrder(terminal.map(({ actual_cost_micro, attempt_count }) => `${actual_cost_micro} ${attempt_count}`))).toEqual([
      "1500000 3",
      "x 1",
    ]);
    expect(billing.effectsOf(settled.reservation_id)).toBe(1);
    expect(billing.callsOf(failing.reservation_id)).toHaveLength(3);
  });

  it("a directory that cannot be used: ready() says so, and entries are in memory and in the log as before", async () => {
    const file = join(await freshDirectory(), "a-file");
    await writeFile(file, "");
    await using scene = sceneOf(billing, { dlqStore: storeOf(), journalDir: file });
    await expect(scene.client.ready()).rejects.toThrow();
    await redis.kill();
    const given = request();
    expect(await scene.client.finalize(given)).toMatchObject({ status: "dlq", stored: "memory", survives: "nothing" });
    expect(scene.kept.of("not durable; settle").map(({ entry }) => entry)).toMatchObject([given]);
    expect(scene.client.isDurable()).toBe(false);
    await redis.restart();
  });

  it.each([
    ["without a store above it", { dlqStore: undefined, journalDir: "/tmp/x" }],
    ["that is no path", { journalDir: "" }],
    ["twice", { dlqStore: createMemoryStore(), journalDir: "/tmp/x", makegood: { journal: { directory: "/tmp/y" } } }],
  ])("a journalDir %s is refused at start", (_name, options) => {
    expect(() => sceneOf(billing, options)).toThrow(expect.objectContaining({ code: "invalid_config" }));
  });
});

describe("journalDir, on a kernel store", () => {
  it("CON-7: a store that refuses: on disk, and up again when it answers", async () => {
    const directory = await freshDirectory();
    const inner = createMemoryStore();
    let away: boolean = true;
    const refuse = () => {
      if (away) throw new MakegoodError("store_unavailable", "the store is away");
    };
    const store: Store = {
      ...inner,
      traits: { ...inner.traits, name: "fragile", survives: "power-loss" },
      async enqueue(messages, how) {
        refuse();
        return inner.enqueue(messages, how);
      },
      async check() {
        refuse();
        return inner.check();
      },
    };
    const given = { billingUrl: billing.url, s2sSigner: testSigner(), dlqStore: store, log: keptLog().log };
    const client = createSettlementClient({ ...given, journalDir: directory });
    const one = request();
    expect(await client.finalize(one)).toMatchObject({ status: "dlq", stored: "journal", survives: "power-loss" });
    expect(await onDisk(directory)).toEqual(waiting([one]));
    expect(await client.getDLQSize()).toBe(1);
    away = false;
    await until("moved up", async () => (await inner.list({ topic: "billing/finalize", limit: 10 })).data.length === 1);
    await until("nothing is left below", async () => (await onDisk(directory)).length === 0);
    expect((await inner.list({ topic: "billing/finalize", limit: 10 })).data).toMatchObject([{ key: one.reservation_id }]);
    expect(await client.getDLQSize()).toBe(1);
    await client.close();
  });
});
