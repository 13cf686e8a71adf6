/**
 * Fault 19: an idle repeatable-read transaction keeps vacuum from removing what churns. A claim must not walk over the dead
 * entries: it stays within five times its baseline, and so does the look for lanes, paid for by looking more rarely.
 */
import pg from "pg";
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import type { Settle } from "../../src/message/settlement.ts";
import type { Store } from "../../src/store/store.ts";
import { databaseUrl } from "../support/postgres.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 120_000 });

const BATCH = 500;
const CHURN = 60_000;

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Claims and settles until `count` are done; returns what each claim took. */
async function drain(store: Store, count: number): Promise<number[]> {
  const took: number[] = [];
  for (let done = 0; done < count; ) {
    const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: BATCH }));
    const startedMs = performance.now();
    const claimed = await store.claim({ owner: "churn", leaseMs: 30_000, lanes });
    took.push(performance.now() - startedMs);
    const settle = ({ id, claim, attempt }: (typeof claimed)[number]): Settle => {
      return { id, claim, attempt, durationMs: 0, settlement: { kind: "delivered", outcome: "delivered" } };
    };
    await store.settle(claimed.map(settle));
    done += claimed.length;
    expect(claimed.length).toBeGreaterThan(0);
  }
  return took;
}

it("fault 19: claims stay bounded while an idle repeatable-read transaction is open", async () => {
  await using fault = await scene({ topics: [topic("churn/it")] });
  const { store } = fault;
  const fill = async (count: number) => {
    for (let i = 0; i < count; i += 1_000) {
      await fault.mg.enqueueMany(
        "churn/it",
        Array.from({ length: 1_000 }, () => ({ payload: i })),
      );
    }
  };
  await fill(10_000);
  const baseline = median(await drain(store, 10_000));

  const old = new pg.Client({ connectionString: databaseUrl() });
  await old.connect();
  await old.query("begin isolation level repeatable read");
  await old.query(`select count(*) from "${fault.schema}".ready`);
  let last: number[] = [];
  for (let churned = 0; churned < CHURN; churned += 10_000) {
    await fill(10_000);
    last = await drain(store, 10_000);
  }
  const [dead] = await fault.sql("select n_dead_tup from pg_stat_user_tables where schemaname = $1 and relname = 'ready'", [
    fault.schema,
  ]);
  await old.query("rollback");
  await old.end();
  process.stdout.write(
    `fault 19: claim median ${baseline.toFixed(1)} ms before, ${median(last).toFixed(1)} ms after ${CHURN} (${dead?.n_dead_tup} dead)\n`,
  );
  expect(median(last)).toBeLessThan(5 * Math.max(baseline, 2));
  expect(await fault.counts()).toMatchObject({ pending: 0, processing: 0, delivered: 10_000 + CHURN });
});
