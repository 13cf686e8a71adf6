// pg-boss at its best settings: big batches while it drains; woken by LISTEN/NOTIFY, one job at a time, for latency.
import { PgBoss } from "pg-boss";
import { vacuumSchema } from "../lib/postgres-tables.mjs";

const queue = "bench";

async function start(pgUrl, mode) {
  const useListenNotify = mode === "latency";
  const boss = new PgBoss({ connectionString: pgUrl, max: 20, schedule: false, supervise: false, useListenNotify });
  boss.on("error", (error) => console.error("pg-boss:", error.message));
  await boss.start();
  return boss;
}

export default {
  key: "pgboss",
  name: "pg-boss",
  needs: "postgres",
  package: "pg-boss",
  settings:
    "supervise and schedule off, max 20; drain: batchSize 2000, localConcurrency 2, burstWhenBatchFull; latency: useListenNotify, batchSize 1, localConcurrency 4",

  async setup({ pgUrl }) {
    const boss = await start(pgUrl, "drain");
    await boss.createQueue(queue);
    await boss.stop({ graceful: false });
  },
  async reset({ pool, pgUrl }, mode) {
    await pool.query("truncate pgboss.job");
    const boss = await start(pgUrl, mode);
    await boss.updateQueue(queue, { notify: mode === "latency" });
    await boss.stop({ graceful: false });
  },
  async afterLoad({ pool }) {
    await vacuumSchema(pool, "pgboss");
  },

  async producer({ pgUrl }, mode) {
    const boss = await start(pgUrl, mode);
    return {
      one: (payload) => boss.send(queue, payload),
      many: (payloads) =>
        boss.insert(
          queue,
          payloads.map((data) => ({ data })),
        ),
      inTransaction: (client, payload) =>
        boss.send(queue, payload, { db: { executeSql: (text, values) => client.query(text, values) } }),
      close: () => boss.stop({ graceful: false }),
    };
  },

  async worker({ pgUrl }, mode, onMessage) {
    const boss = await start(pgUrl, mode);
    const options =
      mode === "latency"
        ? { batchSize: 1, localConcurrency: 4, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 30 }
        : { batchSize: 2000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
    return {
      async start() {
        await boss.work(queue, options, async (jobs) => {
          for (const job of jobs) onMessage(job.data);
        });
      },
      stop: () => boss.stop({ graceful: true, timeout: 10_000 }),
    };
  },
};
