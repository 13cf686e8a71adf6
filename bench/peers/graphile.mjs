// graphile-worker at its best settings: a local queue and batched completion while it drains, neither for latency.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { makePool, vacuumSchema } from "../lib/postgres-tables.mjs";

const logger = new Logger(() => () => {});
const task = "bench";
const schema = "graphile_worker";
const addText = "select graphile_worker.add_job($1::text, $2::json)";

const presets = {
  drain: { concurrentJobs: 24, localQueue: { size: 1000 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
  latency: { concurrentJobs: 24 },
};

export default {
  key: "graphile",
  name: "graphile-worker",
  needs: "postgres",
  package: "graphile-worker",
  settings:
    "concurrentJobs 24; drain: localQueue.size 1000, completeJobBatchDelay 0, failJobBatchDelay 0; latency: without local queue and batching",

  async setup({ pool }) {
    const utils = await makeWorkerUtils({ pgPool: pool, logger });
    await utils.migrate();
    await utils.release();
  },
  async reset({ pool }) {
    await pool.query("truncate graphile_worker._private_jobs");
  },
  async afterLoad({ pool }) {
    await vacuumSchema(pool, schema);
  },

  async producer({ pgUrl }) {
    const pool = makePool(pgUrl, 20);
    const utils = await makeWorkerUtils({ pgPool: pool, logger });
    return {
      one: (payload) => utils.addJob(task, payload),
      many: (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: task, payload }))),
      inTransaction: (client, payload) =>
        client.query({ name: "graphile-add", text: addText, values: [task, JSON.stringify(payload)] }),
      async close() {
        await utils.release();
        await pool.end();
      },
    };
  },

  async worker({ pgUrl }, mode, onMessage) {
    const pool = makePool(pgUrl, 20);
    let runner;
    return {
      async start() {
        runner = await run({
          pgPool: pool,
          logger,
          noHandleSignals: true,
          parsedCronItems: [],
          taskList: { [task]: (payload) => onMessage(payload) },
          preset: { worker: { ...presets[mode], logger } },
        });
      },
      async stop() {
        await runner.stop();
        await pool.end();
      },
    };
  },
};
