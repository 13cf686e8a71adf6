/**
 * Fault 1: SIGKILL of a worker at each named point of the walk. Whatever the moment, another worker finishes the work within
 * a lease and a poll, nothing is lost, nothing is settled twice, and only a death between the 2xx and the settle may repeat
 * a delivery, under the same key.
 */
import { describe, expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { startWorker, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

const LEASE_MS = 1_500;
const MESSAGES = 5;

async function setUp(stopAt: string | undefined) {
  const receiver = await startReceiver();
  const definition = {
    name: "kill/here",
    url: receiver.url,
    leaseMs: LEASE_MS,
    timeoutMs: 1_000,
    retry: { attemptsMax: 3, baseMs: 100 },
  };
  const { name, url, ...rest } = definition;
  const it = await scene({ topics: [topic(name, { ...rest, sink: { kind: "http", url } })] });
  const victim = await startWorker({ url: it.url, schema: it.schema, topics: [definition], stopAt });
  return { ...it, receiver, victim, topics: [definition] };
}

/** Kills the victim now and lets another worker finish; returns how long that took. */
async function recover(fault: Awaited<ReturnType<typeof setUp>>): Promise<number> {
  await fault.victim.end("SIGKILL");
  const killedMs = performance.now();
  const rescuer = await startWorker({ url: fault.url, schema: fault.schema, topics: fault.topics });
  await fault.settled(30_000);
  const tookMs = performance.now() - killedMs;
  expect((await rescuer.end("SIGTERM")).code).toBe(0);
  return tookMs;
}

async function finish(fault: Awaited<ReturnType<typeof setUp>>, tookMs: number): Promise<void> {
  // Lease, the rescuer's start, its look for expired leases, its poll; and a machine that is busy with other suites.
  expect(tookMs).toBeLessThan(LEASE_MS + 10_000);
  expect(await fault.check({ receiver: fault.receiver, attemptsMax: 3 })).toEqual([]);
  expect(fault.receiver.effects.size).toBe(MESSAGES);
  await fault.receiver[Symbol.asyncDispose]();
  await fault[Symbol.asyncDispose]();
}

describe.concurrent("fault 1: SIGKILL of a worker", () => {
  it("fault 1: after the claim: nothing was sent, and each message is sent once", async () => {
    const fault = await setUp("after claim");
    await fault.send("kill/here", MESSAGES);
    await fault.victim.fact(({ type }) => type === "stopped");
    expect(fault.receiver.arrivals).toEqual([]);
    await finish(fault, await recover(fault));
    expect(fault.receiver.arrivals).toHaveLength(MESSAGES);
  });

  it("fault 1: in the middle of the request: sent again under the same key", async () => {
    const fault = await setUp(undefined);
    fault.receiver.default("hang");
    await fault.send("kill/here", MESSAGES);
    await until("the requests are there", () => fault.receiver.arrivals.length === MESSAGES);
    fault.receiver.default({ status: 200 });
    const ids = new Set(fault.receiver.arrivals.map(({ id }) => id));
    await finish(fault, await recover(fault));
    expect(fault.receiver.arrivals).toHaveLength(2 * MESSAGES);
    expect(new Set(fault.receiver.arrivals.map(({ id }) => id))).toEqual(ids);
  });

  it("fault 1: after the 2xx and before the settle: repeated under the same key, settled once", async () => {
    const fault = await setUp("before settle");
    await fault.send("kill/here", MESSAGES);
    await fault.victim.fact(({ type }) => type === "stopped");
    await until("all were sent", () => fault.receiver.arrivals.length === MESSAGES);
    await finish(fault, await recover(fault));
    expect(fault.receiver.arrivals).toHaveLength(2 * MESSAGES);
  });

  it("fault 1: in the settle: settled once, whichever of the two was faster", async () => {
    const fault = await setUp("in settle");
    await fault.send("kill/here", MESSAGES);
    await fault.victim.fact(({ type }) => type === "stopped");
    await finish(fault, await recover(fault));
  });

  it("fault 1: after the settle and before it heard of it: not sent again", async () => {
    const fault = await setUp("after settle");
    const [id] = await fault.send("kill/here", 1);
    await fault.victim.fact(({ type }) => type === "stopped");
    await fault.send("kill/here", MESSAGES - 1, undefined, "more");
    await finish(fault, await recover(fault));
    expect(fault.receiver.of(id as string)).toHaveLength(1);
    expect(await fault.store.get(id as string)).toMatchObject({ status: "delivered", attempts: 1 });
  });
});
