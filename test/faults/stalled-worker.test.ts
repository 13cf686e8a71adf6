/**
 * Faults 3 and 6: a worker that stands still for longer than its lease, by SIGSTOP in the middle of a request or because a
 * handler blocks its event loop. Another worker delivers; when the first one wakes up it still believes in its claim, and
 * nothing of what it writes may count (F, S).
 */
import { describe, expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { startCli, startWorker, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

describe.concurrent("a worker stalls past its lease", () => {
  it.for([200, 500])(
    "fault 3: SIGSTOP in the middle of a request, another delivers, SIGCONT: the late answer %i changes nothing",
    async (late) => {
      await using receiver = await startReceiver("hang");
      const sink = { kind: "http" as const, url: receiver.url };
      const retry = { attemptsMax: 3, baseMs: 100 };
      await using fault = await scene({ topics: [topic("stop/it", { sink, leaseMs: 1_500, timeoutMs: 1_300, retry })] });
      const env = { DATABASE_URL: fault.url, MAKEGOOD_SCHEMA: fault.schema, MAKEGOOD_POLL_MS: "200" };
      const stopped = await startCli(["work"], env);
      await stopped.fact(({ message }) => message === "working");
      const [id = ""] = await fault.send("stop/it", 1);
      await until("the request is there", () => receiver.arrivals.length === 1);
      stopped.signal("SIGSTOP");
      receiver.script("k-0", [{ status: 200 }]);
      const other = await startCli(["work"], env);
      await until("another delivers it", async () => (await fault.store.get(id))?.status === "delivered");
      const before = { view: await fault.store.get(id), history: await fault.store.history(id) };
      // The first request gets its answer while nobody reads it; then its worker wakes up.
      receiver.release(late);
      stopped.signal("SIGCONT");
      await stopped.fact(({ event, id: lost }) => event === "claim_lost" && lost === id);
      await fault.send("stop/it", 20, undefined, "after");
      receiver.default({ status: 200 });
      await until("both work on", async () => (await fault.counts()).delivered === 21);
      expect({ view: await fault.store.get(id), history: await fault.store.history(id) }).toEqual(before);
      for (const worker of [stopped, other]) expect(await worker.end("SIGTERM")).toMatchObject({ code: 0 });
      expect(receiver.of(id)).toHaveLength(2);
      expect(await fault.check({ receiver, attemptsMax: 3 })).toEqual([]);
    },
  );

  it("fault 6: a handler blocks the event loop for 10 s under a lease of 3 s: others go on, its outcome does not count", async () => {
    const limits = { leaseMs: 3_000, timeoutMs: 20_000, retry: { attemptsMax: 5, baseMs: 100 } };
    await using fault = await scene({ topics: [topic("block/it", limits)] });
    const { url, schema } = fault;
    const start = (handler: string) =>
      startWorker({ url, schema, topics: [{ name: "block/it", handler, ...limits }], concurrency: 4, tellsAll: true });
    const blocked = await start("block");
    const [id = ""] = await fault.send("block/it", 1, () => ({ ms: 10_000, tells: true }));
    await blocked.fact(({ type }) => type === "begins");
    const other = await start("ok");
    await fault.send("block/it", 50, undefined, "others");
    await until("others are delivered", async () => (await fault.counts()).delivered === 51, 9_000);
    expect(blocked.facts.some(({ event }) => event === "claim_lost")).toBe(false);
    const before = await fault.store.history(id);
    await blocked.fact(({ event, id: lost }) => event === "claim_lost" && lost === id);
    // It works on: what comes next is taken by either.
    await other.end("SIGTERM");
    await fault.send("block/it", 10, () => ({ do: "ok" }), "next");
    await fault.settled();
    expect(await fault.store.history(id)).toEqual(before);
    expect(await blocked.end("SIGTERM")).toMatchObject({ code: 0 });
    expect(await fault.check({ attemptsMax: 5 })).toEqual([]);
  });
});
