// BullMQ on Redis at its best settings. Its durability is Redis': a second may be lost at power loss.
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { sleep } from "../lib/time.mjs";

const queueName = "bench";
const jobOptions = { attempts: 3, backoff: { type: "exponential", delay: 1000 }, removeOnComplete: true, removeOnFail: 1000 };
const shapes = { drain: { workers: 4, concurrency: 50 }, latency: { workers: 1, concurrency: 50 } };

export default {
  key: "bullmq",
  name: "BullMQ",
  needs: "redis",
  package: "bullmq",
  settings: "removeOnComplete, attempts 3, exponential backoff; drain: 4 Workers × concurrency 50; latency: 1 × 50",

  async setup() {},
  /** Waits for a rewrite of the append-only file: it would take CPU from the next measurement. */
  async reset({ redis: connection }) {
    const redis = new Redis(connection);
    await redis.flushall();
    while (/aof_rewrite_(in_progress|scheduled):1/.test(await redis.info("persistence"))) await sleep(50);
    await redis.quit();
  },
  async afterLoad() {},

  async producer({ redis: connection }) {
    const queue = new Queue(queueName, {
      connection: { ...connection, maxRetriesPerRequest: null },
      defaultJobOptions: jobOptions,
    });
    await queue.waitUntilReady();
    return {
      one: (payload) => queue.add("message", payload),
      many: (payloads) => queue.addBulk(payloads.map((data) => ({ name: "message", data }))),
      close: () => queue.close(),
    };
  },

  async worker({ redis: connection }, mode, onMessage) {
    const { workers: count, concurrency } = shapes[mode];
    const options = {
      connection: { ...connection, maxRetriesPerRequest: null },
      concurrency,
      autorun: false,
      removeOnComplete: { count: 0 },
    };
    const workers = Array.from({ length: count }, () => new Worker(queueName, async (job) => onMessage(job.data), options));
    for (const worker of workers) worker.on("error", (error) => console.error("BullMQ:", error.message));
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    return {
      async start() {
        for (const worker of workers) worker.run().catch((error) => console.error("BullMQ:", error.message));
      },
      async stop() {
        await Promise.all(workers.map((worker) => worker.close()));
      },
    };
  },
};
