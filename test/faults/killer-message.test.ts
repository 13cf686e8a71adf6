/**
 * Fault 7: a message that ends its worker each time. Its attempts are counted at the claim, so it dies after its budget also
 * when no worker ever lives to report it; and whoever was claimed with it is neither charged nor left behind.
 */
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { type Process, startWorker } from "../support/processes.ts";
import { type Scene, scene } from "./scene.ts";

vi.setConfig({ testTimeout: 110_000 });

const limits = { leaseMs: 1_000, retry: { attemptsMax: 3, baseMs: 50, maxMs: 50 } };

/** Starts a worker again each time it ends, until the work is done. Returns how often it was ended. */
async function supervise(fault: Scene, options: object, done: () => Promise<boolean>): Promise<number> {
  const { url, schema } = fault;
  const topics = [{ name: "kill/worker", handler: "ok", ...limits }];
  let crashes = 0;
  const start = (): Promise<Process> => startWorker({ url, schema, topics, ...options }).catch(start);
  let worker = await start();
  for (;;) {
    await Promise.race([worker.ended, new Promise((resolve) => setTimeout(resolve, 200))]);
    if (worker.over) {
      crashes++;
      if (crashes > 20) throw new Error("the worker was killed more than 20 times");
      worker = await start();
    }
    if (await done()) break;
  }
  expect(await worker.end("SIGTERM")).toMatchObject({ code: 0 });
  return crashes;
}

it.concurrent("fault 7: a handler that calls process.exit each time ends as a dead letter, across restarts", async () => {
  await using fault = await scene({ topics: [topic("kill/worker", limits)] });
  const [killer = ""] = await fault.send("kill/worker", 1, () => ({ do: "exit" }), "killer");
  const crashes = await supervise(fault, {}, async () => (await fault.store.get(killer))?.status === "dead");
  expect(crashes).toBe(3);
  expect(await fault.store.get(killer)).toMatchObject({ status: "dead", attempts: 3, lastCode: "lease_lost" });
  const { attempts } = await fault.store.history(killer);
  expect(attempts.map(({ outcome, counted }) => ({ outcome, counted }))).toEqual(
    Array(3).fill({ outcome: "lost", counted: true }),
  );
  expect(await fault.check({ attemptsMax: 3, dead: ["killer-0"] })).toEqual([]);
});

it.concurrent.for([
  { how: "at once", payload: { do: "exit" } },
  { how: "while its neighbours are being delivered", payload: { do: "exitLater", ms: 30 } },
])("fault 7: of 50 messages claimed together the killer dies ($how), and none of the 49 is charged", async ({ payload }) => {
  await using fault = await scene({ topics: [topic("kill/worker", limits)] });
  const neighbours = (n: number) => ({ n, do: "sleep", ms: 50 });
  const before = await fault.send("kill/worker", 25, neighbours, "before");
  const [killer = ""] = await fault.send("kill/worker", 1, () => payload, "killer");
  const after = await fault.send("kill/worker", 24, neighbours, "after");
  const crashes = await supervise(fault, { concurrency: 50 }, async () => {
    const { pending, processing } = await fault.counts();
    return pending + processing === 0;
  });
  expect(await fault.store.get(killer)).toMatchObject({ status: "dead" });
  const counted = (await fault.store.history(killer)).attempts.filter((attempt) => attempt.counted);
  expect(counted.length).toBeLessThanOrEqual(3);
  // In the batch, in a group of eight, and then alone until its budget is spent.
  expect(crashes).toBeLessThanOrEqual(6);
  for (const id of [...before, ...after]) {
    const { attempts } = await fault.store.history(id);
    expect(attempts.filter((attempt) => attempt.counted).map(({ outcome }) => outcome)).toEqual(["delivered"]);
  }
  expect(await fault.check({ attemptsMax: 3, dead: ["killer-0"] })).toEqual([]);
});
