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

const MESSAGES = 5;

async function setUp(stopAt?: string, timeoutMs = 1_000) {
  const receiver = await startReceiver();
  const limits = { leaseMs: 1.5 * timeoutMs, timeoutMs, retry: { attemptsMax: 3, baseMs: 100 } };
  const stage = await scene({ topics: [topic("kill/here", { ...limits, sink: { kind: "http", url: receiver.url } })] });
  const { url, schema } = stage;
  const start = (more: object) =>
    startWorker({ url, schema, topics: [{ name: "kill/here", url: receiver.url, ...limits }], ...more });
  const victim = await start({ stopAt });

  /** Kills the victim now, lets another worker finish and checks everything. */
  async function recover(): Promise<void> {
    await victim.end("SIGKILL");
    const killedMs = performance.now();
    const rescuer = await start({});
    await stage.settled(30_000);
    process.stdout.write(`fault 1: finished ${Math.round(performance.now() - killedMs)} ms after the kill\n`);
    // Lease, the rescuer's start, its look for expired leases, its poll; and a machine that is busy with other suites.
    expect(performance.now() - killedMs).toBeLessThan(limits.leaseMs + 15_000);
    expect((await rescuer.end("SIGTERM")).code).toBe(0);
    expect(await stage.check({ receiver, attemptsMax: 3 })).toEqual([]);
    expect(receiver.effects.size).toBe(MESSAGES);
  }

  return {
    ...stage,
    receiver,
    victim,
    recover,
    stopped: () => victim.fact(({ type }) => type === "stopped"),
    async [Symbol.asyncDispose]() {
      await receiver[Symbol.asyncDispose]();
      await stage[Symbol.asyncDispose]();
    },
  };
}

describe.concurrent("fault 1: SIGKILL of a worker", () => {
  it("fault 1: after the claim: nothing was sent, and each message is sent once", async () => {
    await using fault = await setUp("after claim");
    await fault.send("kill/here", MESSAGES);
    await fault.stopped();
    expect(fault.receiver.arrivals).toEqual([]);
    await fault.recover();
    expect(fault.receiver.arrivals).toHaveLength(MESSAGES);
  });

  it("fault 1: in the middle of the request: sent again under the same key", async () => {
    // None may end by itself before the last has arrived.
    await using fault = await setUp(undefined, 4_000);
    const { receiver } = fault;
    receiver.default("hang");
    await fault.send("kill/here", MESSAGES);
    await until("the requests are there", () => receiver.arrivals.length === MESSAGES);
    receiver.default({ status: 200 });
    const ids = new Set(receiver.arrivals.map(({ id }) => id));
    await fault.recover();
    expect(receiver.arrivals).toHaveLength(2 * MESSAGES);
    expect(new Set(receiver.arrivals.map(({ id }) => id))).toEqual(ids);
  });

  it("fault 1: after the 2xx and before the settle: repeated under the same key, settled once", async () => {
    await using fault = await setUp("before settle");
    await fault.send("kill/here", MESSAGES);
    await fault.stopped();
    await until("all were sent", () => fault.receiver.arrivals.length === MESSAGES);
    await fault.recover();
    expect(fault.receiver.arrivals).toHaveLength(2 * MESSAGES);
  });

  it("fault 1: in the settle: settled once, whichever of the two was faster", async () => {
    await using fault = await setUp("in settle");
    await fault.send("kill/here", MESSAGES);
    await fault.stopped();
    await fault.recover();
  });

  it("fault 1: after the settle and before it heard of it: not sent again", async () => {
    await using fault = await setUp("after settle");
    const [id = ""] = await fault.send("kill/here", 1);
    await fault.stopped();
    await fault.send("kill/here", MESSAGES - 1, undefined, "more");
    await fault.recover();
    expect(fault.receiver.of(id)).toHaveLength(1);
    expect(await fault.store.get(id)).toMatchObject({ status: "delivered", attempts: 1 });
  });
});
