/**
 * Fault 7: a message that ends its worker each time. Its attempts are counted at the claim, so it dies after its budget also
 * when no worker ever lives to report it; and what shared its worker, in its batch or in a lease of its own, is neither
 * charged to death nor left behind.
 */
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { startWorker, type WorkerOptions } from "../support/processes.ts";
import { type Scene, scene } from "./scene.ts";

vi.setConfig({ testTimeout: 110_000 });

const limits = { leaseMs: 1_000, retry: { attemptsMax: 3, baseMs: 50, maxMs: 50 } };

/** A message is suspected twice, in its batch and in a small group, before it is alone and its attempts count. */
const SUSPECTED = 2;

/** Starts a worker again each time it ends, until everything is settled. Returns how often it was ended. */
async function supervise(
  fault: Scene,
  options: { readonly topics: readonly object[]; readonly concurrency?: number },
): Promise<number> {
  const start = () => startWorker({ url: fault.url, schema: fault.schema, ...options } as WorkerOptions);
  for (let crashes = 0; crashes < 20; crashes++) {
    // One that is killed while it starts is simply started again.
    const worker = await start().catch(start);
    const settled = fault.settled(60_000).then(() => true);
    if (!(await Promise.race([settled, worker.ended.then(() => false)]))) {
      settled.catch(() => undefined);
      continue;
    }
    expect(await worker.end("SIGTERM")).toMatchObject({ code: 0 });
    return crashes;
  }
  throw new Error("the worker was killed 20 times");
}

const told = async (fault: Scene, id: string) =>
  (await fault.store.history(id)).attempts.map(({ outcome, counted }) => `${outcome}${counted ? "" : " (not counted)"}`);

it.concurrent("fault 7: a handler that calls process.exit each time ends as a dead letter, across restarts", async () => {
  await using fault = await scene({ topics: [topic("kill/worker", limits)] });
  const [killer = ""] = await fault.send("kill/worker", 1, () => ({ do: "exit" }), "killer");
  const crashes = await supervise(fault, { topics: [{ name: "kill/worker", ...limits }] });
  expect(crashes).toBe(SUSPECTED + limits.retry.attemptsMax);
  expect(await fault.store.get(killer)).toMatchObject({ status: "dead", attempts: 3, lastCode: "lease_lost" });
  expect(await told(fault, killer)).toEqual([...Array(SUSPECTED).fill("lost (not counted)"), "lost", "lost", "lost"]);
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
  const crashes = await supervise(fault, { topics: [{ name: "kill/worker", ...limits }], concurrency: 50 });
  expect(crashes).toBeLessThanOrEqual(SUSPECTED + limits.retry.attemptsMax);
  expect((await told(fault, killer)).filter((attempt) => attempt === "lost").length).toBeLessThanOrEqual(3);
  for (const id of [...before, ...after]) {
    const counted = (await fault.store.history(id)).attempts.filter((attempt) => attempt.counted);
    expect(counted.map(({ outcome }) => outcome)).toEqual(["delivered"]);
  }
  expect(await fault.check({ attemptsMax: 3, dead: ["killer-0"] })).toEqual([]);
});

it.concurrent("fault 7: a long job alone in its lease survives a neighbour that kills their worker each time", async () => {
  // Different lease times never share a lease: each of the two looks guilty.
  const longer = { ...limits, leaseMs: 1_100 };
  await using fault = await scene({ topics: [topic("kill/worker", limits), topic("long/job", longer)] });
  const [job = ""] = await fault.send("long/job", 1, () => ({ do: "sleep", ms: 1_500 }), "job");
  await fault.send("kill/worker", 1, () => ({ do: "exitLater", ms: 300 }), "killer");
  await supervise(fault, {
    topics: [
      { name: "kill/worker", ...limits },
      { name: "long/job", ...longer },
    ],
  });
  expect((await told(fault, job)).at(-1)).toBe("delivered");
  expect(await fault.check({ attemptsMax: 3, dead: ["killer-0"] })).toEqual([]);
});
