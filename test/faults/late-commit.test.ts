/**
 * Faults 21 and 22: what a cursor or a missed notification would lose. A transaction that took its id and its due time early
 * and commits late is delivered soon after its commit, also when thousands of younger messages went before it; and a hint
 * that never comes costs a poll interval at most. Nor may one slow look make the next ones blind.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { databaseUrl, withClient } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { newMessage, scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

async function setUp(options: { pollMs: number; handlerMs?: number; via?: (url: string) => string }) {
  const delivered = new Map<string, number>();
  const sink = async (_payload: unknown, { id }: { id: string }): Promise<void> => {
    if (options.handlerMs) await sleep(options.handlerMs);
    delivered.set(id, performance.now());
  };
  const stage = await scene({ ...options, topics: [topic("late/it", { sink })] });
  return { ...stage, delivered };
}

async function begun() {
  const client = new pg.Client({ connectionString: databaseUrl() });
  await client.connect();
  await client.query("begin");
  return client;
}

describe("looking for work", () => {
  it("I11: a look that took long, behind a lock or a busy pool, hides nothing that came after it", async () => {
    await using fault = await setUp({ pollMs: 300 });
    await fault.mg.enqueue("late/it", "first");
    const locking = await begun();
    await locking.query(`lock table "${fault.schema}".ready in access exclusive mode`);
    const slow = fault.store.lanes();
    await sleep(400);
    await locking.query("commit");
    await locking.end();
    expect(await slow).toHaveLength(1);
    await fault.mg.enqueue("late/it", "second", { tenantId: "another" });
    expect(await fault.store.lanes()).toHaveLength(2);
  });
});

describe("fault 21: ids and commits in different orders", () => {
  it("fault 21: A takes its id and sleeps, B commits first and is delivered: A is delivered after its commit", async () => {
    await using fault = await setUp({ pollMs: 300 });
    fault.mg.work();
    const slow = await begun();
    const a = await fault.mg.enqueue("late/it", "a", { tx: slow });
    const b = await fault.mg.enqueue("late/it", "b");
    expect(a.id < b.id).toBe(true);
    await until("B is delivered", () => fault.delivered.has(b.id), 10_000);
    await sleep(500);
    expect(fault.delivered.has(a.id)).toBe(false);
    await slow.query("commit");
    await slow.end();
    await until("A is delivered", () => fault.delivered.has(a.id), 10_000);
  });

  it("fault 21: the same in the middle of a backlog, past the mark where claims begin", async () => {
    await using fault = await setUp({ pollMs: 300, handlerMs: 1 });
    const slow = await begun();
    const { id } = await fault.mg.enqueue("late/it", "a", { tx: slow });
    const more = async (count: number) => {
      for (let i = 0; i < count; i += 1_000) {
        await fault.mg.enqueueMany(
          "late/it",
          Array.from({ length: 1_000 }, () => ({ payload: i })),
        );
      }
    };
    await more(20_000);
    fault.mg.work();
    await until("claims are far beyond it", () => fault.delivered.size > 3_000);
    await slow.query("commit");
    await slow.end();
    const committedMs = performance.now();
    // The backlog goes on for as long as this takes.
    const end = new AbortController();
    const refill = (async () => {
      while (!end.signal.aborted) {
        if ((await fault.counts()).pending < 10_000) await more(5_000);
        await sleep(50);
      }
    })();
    await until("it is delivered although the backlog has not ended", () => fault.delivered.has(id), 20_000);
    end.abort();
    await refill;
    process.stdout.write(
      `fault 21: delivered ${(Number(fault.delivered.get(id)) - committedMs).toFixed(0)} ms after its commit\n`,
    );
    expect(Number(fault.delivered.get(id)) - committedMs).toBeLessThan(8_000);
    expect((await fault.counts()).pending).toBeGreaterThan(0);
  });

  it("fault 21: a transaction that is rolled back is never delivered (G)", async () => {
    await using fault = await setUp({ pollMs: 200 });
    fault.mg.work();
    const slow = await begun();
    const { id } = await fault.mg.enqueue("late/it", "a", { tx: slow });
    await sleep(500);
    await slow.query("rollback");
    await slow.end();
    const { id: next } = await fault.mg.enqueue("late/it", "b");
    await until("a later one is delivered", () => fault.delivered.has(next));
    expect(fault.delivered.has(id)).toBe(false);
    expect(await fault.store.get(id)).toBeNull();
  });
});

describe("fault 22: hints that do not come", () => {
  const POLL_MS = 2_000;

  it.concurrent("fault 22: a message is committed while the listener is reconnecting", async () => {
    const name = `fault22_${process.pid}`;
    const via = (url: string) => `${url}${url.includes("?") ? "&" : "?"}application_name=${name}`;
    await using fault = await setUp({ pollMs: POLL_MS, via });
    fault.mg.work();
    const listeners = "from pg_stat_activity where application_name = $1 and query like 'listen%'";
    await withClient(async (client) => {
      await until("it listens", async () => (await client.query(`select 1 ${listeners}`, [name])).rowCount === 1);
      expect((await client.query(`select pg_terminate_backend(pid) ${listeners}`, [name])).rows).toHaveLength(1);
    });
    const message = newMessage("late/it");
    await fault.store.enqueue([message]);
    await until("it is delivered", () => fault.delivered.has(message.id));
  });

  it.concurrent("fault 22: no NOTIFY is sent at all: delivered within the poll interval", async () => {
    await using fault = await setUp({ pollMs: POLL_MS });
    fault.mg.work();
    await sleep(500);
    for (let n = 0; n < 3; n++) {
      // Whom the enqueue statement would notify: nobody.
      await fault.sql("delete from waiter");
      const message = newMessage("late/it");
      await fault.store.enqueue([message]);
      // Nothing else would find it, and a busy machine may be late.
      await until("it is delivered", () => fault.delivered.has(message.id), POLL_MS + 10_000);
    }
  });

  it.concurrent("fault 22, DO-9: and where they do come, nobody waits for the poll", async () => {
    await using fault = await setUp({ pollMs: 120_000 });
    fault.mg.work();
    await sleep(500);
    for (let n = 0; n < 3; n++) {
      const message = newMessage("late/it");
      await fault.store.enqueue([message]);
      await until("it is delivered", () => fault.delivered.has(message.id));
      await sleep(300);
    }
  });
});
