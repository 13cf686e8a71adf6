/**
 * Two processes on one Redis, each claiming, retrying, abandoning and taking over: every message is settled as delivered exactly once,
 * by either process, and nothing is left over (DF-23).
 */
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { startableDist } from "../support/build.ts";
import { startRedis } from "../support/redis-server.ts";
import { conserved, message, redisScene } from "./redis-scene.ts";

const CHILD = join(dirname(fileURLToPath(import.meta.url)), "redis-child.mjs");

it("DF-4, DF-6, DF-7, DF-23: 1,500 messages, two processes: each is delivered once and none is left", async () => {
  const dist = await startableDist();
  const server = await startRedis();
  const scene = await redisScene(server);
  try {
    const messages = Array.from({ length: 1_500 }, (_, i) => message({ tenantId: `t${i % 5}`, priority: i % 3 }));
    for (let i = 0; i < messages.length; i += 500) await scene.store.enqueue(messages.slice(i, i + 500));
    const seed = Date.now() % 100_000;
    const child = async (n: number) => {
      const options = { dist, url: server.url, prefix: scene.prefix, seed: seed + n, owner: `process-${n}` };
      const { stdout } = await promisify(execFile)(process.execPath, [CHILD, JSON.stringify(options)], { maxBuffer: 10_000_000 });
      return JSON.parse(stdout) as { settled: string[] };
    };
    const [one, two] = await Promise.all([child(1), child(2)]);
    const settled = [...one.settled, ...two.settled];
    expect([settled.length, new Set(settled).size], `seed ${seed}`).toEqual([1_500, 1_500]);
    expect(await conserved(scene)).toBe(1_500);
    expect((await scene.store.counts({ delivered: true })).map(({ status, count }) => [status, count])).toEqual([
      ["delivered", 1_500],
    ]);
  } finally {
    await scene.close();
  }
}, 60_000);
