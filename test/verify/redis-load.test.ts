/**
 * Passes beside everything that moves messages, on Redis: four workers, and a process with a worker and passes of its own that is killed again and again.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { sleep, systemClock } from "../../src/platform/clock.ts";
import { startableDist } from "../support/build.ts";
import { startRedis } from "../support/redis-server.ts";
import { openRedisStore } from "../support/redis-store.ts";
import { LOAD_MS, loaded } from "./load.ts";
import { redisVerifyScene } from "./redis-scene.ts";

it(
  "I12: no pass reports anything while four workers deliver, fail, take over, replay and prune, and one more is killed",
  async () => {
    const server = await startRedis();
    const scene = await redisVerifyScene(server.url);
    const { store, prefix, ask } = scene;
    const opened = () => openRedisStore({ redis: server.url, prefix });
    const others = [await opened(), await opened(), await opened()] as const;
    const door = pathToFileURL(join(await startableDist(), "store/redis/index.js")).href;
    const program = `import { createRedisStore } from ${JSON.stringify(door)};
      const store = createRedisStore({ redis: ${JSON.stringify(server.url)}, prefix: ${JSON.stringify(prefix)} });
      await store.open(); console.log("open");
      const passes = async () => { for (;;) await store.conservation.pass({ reach: "full" }); };
      const works = async () => { for (;;) {
        const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 50 }));
        const claimed = lanes.length > 0 ? await store.claim({ owner: "killed", leaseMs: 300, lanes }) : [];
        await store.settle(claimed.slice(0, 20).map(({ id, claim, attempt }) => ({ id, claim, attempt, durationMs: 1, settlement: { kind: "delivered", outcome: "delivered" } })));
        if (claimed.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      } };
      await Promise.all([passes(), works()]);`;
    let kills = 0;
    async function killed(running: () => boolean): Promise<void> {
      while (running()) {
        const child: ChildProcess = spawn(process.execPath, ["--input-type=module", "-e", program], {
          stdio: ["ignore", "pipe", "inherit"],
        });
        await once(child.stdout!, "data");
        await sleep(systemClock, 50 + Math.random() * 400);
        child.kill("SIGKILL");
        await once(child, "exit");
        kills++;
      }
    }
    const { accepted, retired, refused, reports } = await loaded({
      stores: [store, ...others],
      enqueue: async (messages) => (await store.enqueue(messages)).length,
      async some() {
        const { data } = await store.list({ status: "dead", limit: 20 });
        return data.map(({ id }) => id);
      },
      disturb: killed,
    });
    const last = await scene.verify("full");
    expect([...reports, last].flatMap(({ divergences }) => divergences)).toEqual([]);
    expect(last).toMatchObject({ state: "whole", totals: { accepted } });
    expect(last.limits.join(" ")).not.toMatch(/version before/);
    expect([retired > 0, reports.length > 0, kills > 0, refused]).toEqual([true, true, true, []]);
    expect(last.totals?.archived).toBe(retired);
    const sum = (values: unknown) => (values as string[]).reduce((total, value) => total + Number(value), 0);
    expect([sum(await ask("HVALS", "@accepted")), await ask("LLEN", "@intake")]).toEqual([accepted, 0]);
    for (const other of others) await other.close();
    await scene.close();
  },
  2 * LOAD_MS + 60_000,
);
