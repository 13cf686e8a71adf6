/**
 * Fault 20: 50,000 rows that another session has locked, and one tenant with 100,000 due messages. Others are served as if nothing
 * were there, and the flood itself is worked off once it can be.
 */
import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { databaseUrl } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { type Scene, scene } from "./scene.ts";

vi.setConfig({ testTimeout: 90_000 });

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function setUp(leaseMs = 30_000) {
  const deliveredMs = new Map<string, number>();
  const sink = async (_payload: unknown, { id }: { id: string }): Promise<void> => {
    await pause(2);
    deliveredMs.set(id, performance.now());
  };
  const stage = await scene({ topics: [topic("flood/it", { sink, leaseMs })] });
  return { ...stage, deliveredMs };
}

/** Due messages of one tenant, made inside the server. */
async function flood(fault: Scene, tenantId: string, count: number): Promise<void> {
  const { id } = await fault.mg.enqueue("flood/it", 0, { tenantId });
  const [row] = await fault.sql("select lane_id from message where id = $1", [id]);
  await fault.sql(
    `with i as materialized (select next_id() as id from generate_series(2, $2::int)),
     m as (insert into message (id, lane_id, payload) select id, $1::int, '0' from i)
     insert into ready (due, id, lane_id) select statement_timestamp() - interval '1 s', id, $1::int from i`,
    [row?.lane_id, count],
  );
}

/** How long each of a few messages of other tenants takes from its enqueue to its delivery, worst last. */
async function latencies(fault: Awaited<ReturnType<typeof setUp>>): Promise<number[]> {
  const took: number[] = [];
  for (let n = 0; n < 20; n++) {
    const startedMs = performance.now();
    const { id } = await fault.mg.enqueue("flood/it", n, { tenantId: `quiet-${n % 4}` });
    await until("it is delivered", () => fault.deliveredMs.has(id), 20_000);
    took.push((fault.deliveredMs.get(id) ?? 0) - startedMs);
  }
  return took.sort((a, b) => a - b);
}

const median = (values: number[]) => values[values.length >> 1] ?? Number.NaN;

describe("fault 20: floods", () => {
  it("fault 20: 50,000 locked rows at the head of one lane: others are served, and it drains when they are free", async () => {
    await using fault = await setUp();
    await flood(fault, "locked", 50_000);
    const locker = new pg.Client({ connectionString: databaseUrl() });
    await locker.connect();
    await locker.query("begin");
    await locker.query(`select id from "${fault.schema}".ready for update`);
    const worker = fault.mg.work();
    const took = await latencies(fault);
    process.stdout.write(
      `fault 20: beside 50,000 locked rows: median ${median(took).toFixed(0)} ms, worst ${took.at(-1)?.toFixed(0)} ms\n`,
    );
    expect(median(took)).toBeLessThan(1_000);
    expect(took.at(-1)).toBeLessThan(5_000);
    // A claim from the locked lane itself walks over them: bounded, and it takes nothing.
    const [lane] = (await fault.store.lanes()).filter(({ tenantId }) => tenantId === "locked");
    const startedMs = performance.now();
    expect(await fault.store.claim({ owner: "me", leaseMs: 1_000, lanes: [{ lane: lane?.lane ?? "", limit: 10 }] })).toEqual([]);
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    await worker.stop();
    await locker.query("rollback");
    await locker.end();
    const free = await fault.store.claim({ owner: "me", leaseMs: 60_000, lanes: [{ lane: lane?.lane ?? "", limit: 1_000 }] });
    expect(free).toHaveLength(1_000);
  });

  it("fault 20: one tenant with 100,000 due messages: the others' latency is what it was", async () => {
    await using fault = await setUp();
    const worker = fault.mg.work({ concurrency: 20 });
    const before = await latencies(fault);
    await flood(fault, "flood", 100_000);
    const beganAt = fault.deliveredMs.size;
    await until("the flood is being served", () => fault.deliveredMs.size > beganAt + 500);
    const during = await latencies(fault);
    const left = (await fault.counts()).pending;
    const line = `median ${median(before).toFixed(0)} → ${median(during).toFixed(0)} ms, worst ${during.at(-1)?.toFixed(0)} ms`;
    process.stdout.write(`fault 20: beside a flood: ${line}, ${left} of the flood left\n`);
    expect(left).toBeGreaterThan(0);
    // Relative, with room for a busy machine; in the order of the flood it would be half a minute.
    expect(median(during)).toBeLessThan(3 * Math.max(median(before), 200));
    expect(during.at(-1)).toBeLessThan(5_000);
    await worker.stop({ drainMs: 0 });
  });
});
