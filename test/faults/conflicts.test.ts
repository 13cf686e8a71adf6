/**
 * Fault 23: the short conflicts of a shared database (40001, 40P01, 55P03, 57014), provoked one by one. They are ours to try
 * again: no caller hears of a short one, no attempt is used, and a long one is a bounded error and a rest, not a hot loop.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import { isMakegoodError, topic } from "../../src/index.ts";
import { databaseUrl } from "../support/postgres.ts";
import { startReceiver } from "../support/receiver.ts";
import { newMessage, scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

const withSetting = (setting: string) => (url: string) => {
  const changed = new URL(url);
  changed.searchParams.set("options", `-c ${setting}`);
  return changed.href;
};

async function begun() {
  const client = new pg.Client({ connectionString: databaseUrl() });
  await client.connect();
  await client.query("begin");
  return client;
}

describe("fault 23: conflicts", () => {
  it.for([
    { state: "55P03", setting: "lock_timeout=100" },
    { state: "57014", setting: "statement_timeout=100" },
  ])(
    "fault 23: $state under an ACCESS EXCLUSIVE lock: no attempt is used, and it heals by itself",
    async ({ state, setting }) => {
      await using receiver = await startReceiver();
      const sink = { kind: "http" as const, url: receiver.url };
      const via = withSetting(setting);
      await using fault = await scene({ topics: [topic("lock/it", { sink, leaseMs: 2_000, timeoutMs: 1_500 })], via });
      fault.mg.work();
      await fault.send("lock/it", 50);
      await fault.settled();
      const locker = await begun();
      await locker.query(
        `lock table "${fault.schema}".ready, "${fault.schema}".attempt, "${fault.schema}".lease in access exclusive mode`,
      );
      const startedMs = performance.now();
      const thrown = await fault.mg.store.enqueue([newMessage("lock/it", "blocked")]).catch((error: unknown) => error);
      expect(isMakegoodError(thrown) && thrown.code).toBe("store_unavailable");
      expect(performance.now() - startedMs).toBeLessThan(10_000);
      // One that arrives while the table is locked is tried again until it is free.
      const patient = fault.mg.enqueue("lock/it", { n: "patient" }, { key: "patient" });
      fault.history.ok("patient", '{"n":"patient"}');
      fault.history.unknown("blocked", '{"n":1}');
      await sleep(1_500);
      await locker.query("rollback");
      await locker.end();
      expect((await patient).inserted).toBe(true);
      await fault.settled();
      expect(await fault.check({ receiver, attemptsMax: 1 })).toEqual([]);
      const failures = fault.of("store_error");
      expect(failures.some(({ error }) => /timeout|lock/.test(error))).toBe(true);
      expect(failures.length).toBeLessThan(100);
      process.stdout.write(`fault 23: ${state}: ${failures.length} failures in all\n`);
    },
  );

  it("fault 23: 40P01: an enqueue that meets another transaction in reverse lock order is the victim and goes through", async () => {
    await using fault = await scene({ topics: [topic("lock/it")] });
    const [row] = await fault.sql("select id from topic where name = 'lock/it'");
    const other = await begun();
    const take = (key: string) =>
      other.query(
        `insert into "${fault.schema}".dedupe (topic_id, tenant, key, id, hash) values ($1, '', $2, gen_random_uuid(), gen_random_uuid())`,
        [row?.id, key],
      );
    await take("b");
    const batch = fault.mg.enqueueMany("lock/it", [
      { payload: 1, key: "a" },
      { payload: 2, key: "b" },
    ]);
    await sleep(300);
    // Now each waits for the other; the server ends one of the two after its deadlock_timeout.
    const taken = await take("a").then(
      () => "ours was the victim",
      (error: pg.DatabaseError) => error.code,
    );
    expect(["ours was the victim", "40P01"]).toContain(taken);
    await other.query("rollback");
    await other.end();
    expect((await batch).map(({ inserted }) => inserted)).toEqual([true, true]);
    process.stdout.write(`fault 23: 40P01: ${taken}\n`);
  });

  it.for(["serializable", "repeatable\\ read"])(
    "fault 23: 40001: two workers and several callers on a database whose default isolation is %s",
    async (isolation) => {
      await using receiver = await startReceiver();
      const sink = { kind: "http" as const, url: receiver.url };
      const via = withSetting(`default_transaction_isolation=${isolation}`);
      await using fault = await scene({ topics: [topic("lock/it", { sink, leaseMs: 5_000, timeoutMs: 2_000 })], via });
      fault.mg.work({ concurrency: 5 });
      fault.mg.work({ concurrency: 5 });
      const callers = Array.from({ length: 4 }, async (_, caller) => {
        for (let n = 0; n < 50; n++) {
          const key = `c${caller % 2}-${n}`;
          await fault.mg.enqueue("lock/it", { n }, { key });
          fault.history.ok(key, JSON.stringify({ n }));
        }
      });
      await Promise.all(callers);
      await fault.settled(40_000);
      expect(await fault.check({ receiver, attemptsMax: 1 })).toEqual([]);
      expect(fault.history.size).toBe(100);
      process.stdout.write(`fault 23: 40001 under ${isolation}: ${fault.of("store_error").length} reached the workers\n`);
    },
  );

  it("fault 23: 40001 in the caller's own transaction is the caller's to repeat, and says so", async () => {
    await using fault = await scene({ topics: [topic("lock/it")] });
    const slow = new pg.Client({ connectionString: databaseUrl() });
    await slow.connect();
    await slow.query("begin isolation level repeatable read");
    await slow.query("select 1");
    await fault.mg.enqueue("lock/it", 1, { key: "same" });
    const thrown = await fault.mg.enqueue("lock/it", 1, { key: "same", tx: slow }).catch((error: unknown) => error);
    await slow.query("rollback");
    await slow.end();
    expect(isMakegoodError(thrown) ? thrown.code : String(thrown)).toBe("retry_transaction");
  });
});
