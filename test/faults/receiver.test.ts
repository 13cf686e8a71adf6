/**
 * Faults 29 to 32: receivers that act and then break the connection, that never answer, that answer with too much, and the
 * whole range of statuses, end to end. One effect per key, a bounded number of attempts, and a slot that comes back in time.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { until } from "../support/processes.ts";
import { type Answer, startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

const retry = { attemptsMax: 4, baseMs: 50, maxMs: 200 };

describe("fault 29: acts, then resets before any answer", () => {
  it("fault 29: unknown, tried again under the same key, one effect", async () => {
    await using receiver = await startReceiver();
    const sink = { kind: "http" as const, url: receiver.url };
    await using fault = await scene({ topics: [topic("reset/it", { sink, retry })] });
    for (let n = 0; n < 4; n++) receiver.script(`k-${n}`, ["reset", "reset"]);
    fault.mg.work();
    const ids = await fault.send("reset/it", 4);
    await fault.settled();
    for (const id of ids) {
      const arrivals = receiver.of(id);
      expect(new Set(arrivals.map(({ key }) => key)).size).toBe(1);
      expect(arrivals.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
      expect(arrivals.filter(({ effect }) => effect)).toHaveLength(1);
      const { attempts } = await fault.store.history(id);
      expect(attempts.map(({ outcome }) => outcome)).toEqual(["unknown", "unknown", "delivered"]);
    }
    expect(await fault.check({ receiver, attemptsMax: 4 })).toEqual([]);
  });

  it("fault 29: a receiver that always resets: the attempts end, with the reason", async () => {
    await using receiver = await startReceiver("reset");
    const sink = { kind: "http" as const, url: receiver.url };
    await using fault = await scene({ topics: [topic("reset/it", { sink, retry })] });
    fault.mg.work();
    const [id = ""] = await fault.send("reset/it", 1);
    await fault.settled();
    expect(await fault.store.get(id)).toMatchObject({ status: "dead", attempts: 4 });
    expect(receiver.arrivals).toHaveLength(4);
    expect(await fault.check({ receiver, attemptsMax: 4, dead: ["k-0"] })).toEqual([]);
  });

  it("fault 29: on_unknown hold: sent once, then left to a person", async () => {
    await using receiver = await startReceiver("reset");
    const sink = { kind: "http" as const, url: receiver.url, onUnknown: "hold" as const };
    await using fault = await scene({ topics: [topic("reset/it", { sink, retry })] });
    fault.mg.work();
    const [id = ""] = await fault.send("reset/it", 1);
    await until("it is held", async () => (await fault.store.get(id))?.heldReason === "outcome_unknown");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(receiver.arrivals).toHaveLength(1);
    receiver.default({ status: 200 });
    await fault.mg.replay(id, { actor: "person", reason: "it did not arrive" });
    await fault.settled();
    expect(receiver.arrivals).toHaveLength(2);
    expect(await fault.check({ receiver })).toEqual([]);
  });
});

describe("fault 30: tarpits", () => {
  const TARPITS: { what: string; answer: Answer; outcomes: string[] }[] = [
    { what: "no headers", answer: "hang", outcomes: ["unknown", "unknown"] },
    { what: "503 and a body without end", answer: { drip: 503 }, outcomes: ["retry", "retry"] },
    // The status decides; nobody waits for the rest.
    { what: "200 and a body without end", answer: { drip: 200 }, outcomes: ["delivered"] },
  ];

  it.concurrent.for(TARPITS)("fault 30: $what: one total deadline, and the slot is free again", async ({ answer, outcomes }) => {
    const TIMEOUT_MS = 1_000;
    await using tarpit = await startReceiver(answer);
    await using good = await startReceiver();
    const limits = { leaseMs: 3_000, timeoutMs: TIMEOUT_MS, retry: { attemptsMax: 2, baseMs: 100 } };
    await using fault = await scene({
      topics: [
        topic("tar/pit", { ...limits, sink: { kind: "http", url: tarpit.url } }),
        topic("good/one", { ...limits, sink: { kind: "http", url: good.url } }),
      ],
    });
    fault.mg.work({ concurrency: 2 });
    const stuck = await fault.send("tar/pit", 2, undefined, "stuck");
    await until("the tarpit has one", () => tarpit.arrivals.length > 0);
    await fault.send("good/one", 10, undefined, "good");
    await until("others are delivered", () => good.arrivals.length === 10, TIMEOUT_MS * 4 + 8_000);
    await fault.settled();
    for (const id of stuck) {
      const { attempts } = await fault.store.history(id);
      expect(attempts.map(({ outcome }) => outcome)).toEqual(outcomes);
      for (const { durationMs } of attempts) expect(durationMs).toBeLessThan(TIMEOUT_MS + 2_500);
    }
    await until("its connections are closed", () => tarpit.open === 0, 5_000);
    const dead = outcomes.includes("delivered") ? [] : ["stuck-0", "stuck-1"];
    expect(await fault.check({ attemptsMax: 2, dead })).toEqual([]);
  });
});

describe("faults 31 and 32, end to end", () => {
  it("fault 31: a body without end behind a 200: the status decides and memory stays small", async () => {
    let sentBytes = 0;
    const chunk = Buffer.alloc(65_536, "x");
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(200);
      const pump = (): void => {
        while (!response.destroyed && response.write(chunk)) sentBytes += chunk.length;
      };
      response.on("drain", pump);
      pump();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const sink = { kind: "http" as const, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
    await using fault = await scene({ topics: [topic("big/answer", { sink, retry, leaseMs: 5_000, timeoutMs: 3_000 })] });
    fault.mg.work();
    await fault.send("big/answer", 5);
    await fault.settled();
    server.closeAllConnections();
    server.close();
    expect(sentBytes).toBeLessThan(200 * 1_048_576);
    expect(await fault.check({ attemptsMax: 1 })).toEqual([]);
  });

  it("fault 32: the status zoo: delivered, retried or rejected, as the table says", async () => {
    await using receiver = await startReceiver();
    const sink = { kind: "http" as const, url: receiver.url };
    await using fault = await scene({ topics: [topic("status/zoo", { sink, retry })] });
    const zoo: Record<string, { status: number; end: "delivered" | "dead"; attempts: number; headers?: Record<string, string> }> =
      {
        a: { status: 204, end: "delivered", attempts: 1 },
        b: { status: 302, end: "dead", attempts: 1, headers: { location: "http://127.0.0.1:1/" } },
        c: { status: 400, end: "dead", attempts: 1 },
        d: { status: 404, end: "dead", attempts: 1 },
        e: { status: 410, end: "dead", attempts: 1 },
        f: { status: 422, end: "dead", attempts: 1 },
        g: { status: 408, end: "delivered", attempts: 2 },
        h: { status: 409, end: "delivered", attempts: 2 },
        i: { status: 429, end: "delivered", attempts: 2, headers: { "retry-after": "1" } },
        j: { status: 500, end: "delivered", attempts: 2 },
        k: { status: 503, end: "delivered", attempts: 2, headers: { "retry-after": "-1" } },
        l: { status: 401, end: "delivered", attempts: 2 },
      };
    const worker = fault.mg.work({ concurrency: 1 });
    for (const [key, { status, headers }] of Object.entries(zoo)) {
      receiver.script(key, [{ status, ...(headers ? { headers } : {}) }]);
      const { id } = await fault.mg.enqueue("status/zoo", { status }, { key });
      fault.history.ok(key, JSON.stringify({ status }));
      await until(`${status} is settled`, async () => ["delivered", "dead"].includes((await fault.store.get(id))?.status ?? ""));
      const view = await fault.store.get(id);
      expect({ status, end: view?.status, attempts: view?.attempts }).toEqual({
        status,
        end: zoo[key]?.end,
        attempts: zoo[key]?.attempts,
      });
    }
    await worker.stop();
    const dead = Object.entries(zoo).flatMap(([key, { end }]) => (end === "dead" ? [key] : []));
    expect(await fault.check({ receiver, attemptsMax: 4, dead })).toEqual([]);
    // What was refused for good had no effect, what was refused at first had one in the end.
    expect([...receiver.effects].sort()).toEqual(Object.keys(zoo).filter((key) => !dead.includes(key)));
    const [first, second] = receiver.of("i");
    expect(Number(second?.atMs) - Number(first?.atMs)).toBeGreaterThan(950);
  });
});
