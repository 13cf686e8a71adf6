/** Faults 29, 30 and 31 with real sockets: what was sent and not answered, what never ends, what is far too large. */
import { getEventListeners } from "node:events";
import type { LookupFunction } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import { createAddressGuard } from "../../src/sink/address-guard.ts";
import { httpSink } from "../../src/sink/http.ts";
import type { Sink } from "../../src/sink/sink.ts";
import { testContext, testDelivery } from "../../src/testing/sink-conformance.ts";
import { cannedReceiver, deadPort, httpReceiver, type Listening, loopbackGuard, rawReceiver, send } from "./receiver.ts";

const open: (Sink | Listening)[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) {
    if (Symbol.asyncDispose in one) await one[Symbol.asyncDispose]();
    else await one.close?.();
  }
});

function sinkTo(receiver: Listening, connectionsMax?: number): Sink {
  const sink = httpSink({ url: receiver.url, connectionsMax }, { guard: loopbackGuard });
  open.push(receiver, sink);
  return sink;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe("fault 29: the receiver acts, then resets before it answers", () => {
  it("is unknown, under the same key each time", async () => {
    const effects = new Map<string, number>();
    const receiver = await httpReceiver((seen, request) => {
      const key = String(seen.headers["idempotency-key"]);
      effects.set(key, (effects.get(key) ?? 0) + 1);
      request.socket.resetAndDestroy();
    });
    const sink = sinkTo(receiver);
    for (const attempt of [1, 2, 3]) {
      const { outcome } = await send(sink, { key: "pay-1", idempotencyKey: "pay-1", attempt });
      expect(outcome).toMatchObject({ kind: "unknown", code: "connection_reset" });
    }
    expect([...effects]).toEqual([["pay-1", 3]]);
  });

  it("a clean close instead of an answer is unknown too, on a fresh and on a kept connection", async () => {
    let requests = 0;
    const receiver = await httpReceiver((_seen, request, response) => {
      requests++;
      if (requests === 2) request.socket.end();
      else response.end("ok");
    });
    const sink = sinkTo(receiver, 1);
    expect((await send(sink)).outcome.kind).toBe("delivered");
    expect((await send(sink)).outcome).toMatchObject({ kind: "unknown", code: "connection_reset" });
    expect((await send(sink)).outcome.kind).toBe("delivered");
    expect(requests).toBe(3);
  });

  it("a reset in the middle of a large request is unknown: a part was sent", async () => {
    const receiver = await rawReceiver((socket) => socket.once("data", () => socket.resetAndDestroy()));
    const { outcome } = await send(sinkTo(receiver), { payload: JSON.stringify("x".repeat(1_000_000)) });
    expect(outcome).toMatchObject({ kind: "unknown", code: "connection_reset" });
  });
});

describe("what was not sent is retried", () => {
  it("a server that never finishes the TLS handshake gets no byte of the message", async () => {
    let heard = "";
    const receiver = await rawReceiver((socket) => socket.on("data", (chunk) => (heard += chunk.toString("latin1"))));
    open.push(receiver);
    const sink = httpSink({ url: `https://127.0.0.1:${receiver.port}/` }, { guard: loopbackGuard });
    const { outcome } = await send(sink, { payload: '"the payload"' }, 200);
    expect(outcome).toMatchObject({ kind: "retry", code: "connect_timeout" });
    await receiver[Symbol.asyncDispose]();
    await sink.close?.();
    expect(heard).not.toContain("payload");
  });

  it("plain text where TLS was expected is a tls failure", async () => {
    const receiver = await cannedReceiver("HTTP/1.1 400 no\r\n\r\n");
    open.push(receiver);
    const sink = httpSink({ url: `https://127.0.0.1:${receiver.port}/` }, { guard: loopbackGuard });
    open.push(sink);
    expect((await send(sink)).outcome).toMatchObject({ kind: "retry", code: "tls", alert: true });
  });

  it("a resolver that never answers is cut at the deadline", async () => {
    const guard = createAddressGuard({ lookup: () => undefined });
    const sink = httpSink({ url: "http://slow-dns.example/" }, { guard });
    const { outcome } = await send(sink, {}, 150);
    expect(outcome).toMatchObject({ kind: "retry", code: "connect_timeout" });
    await sink.close?.(); // Does not wait for the resolver: that would be for ever.
  });

  it("a name whose addresses all refuse says so", async () => {
    const both: LookupFunction = (_hostname, _options, callback) =>
      callback(null, [
        { address: "127.0.0.1", family: 4 },
        { address: "127.0.0.2", family: 4 },
      ]);
    const guard = createAddressGuard({ allow: ["127.0.0.0/8"], lookup: both });
    const sink = httpSink({ url: `http://two.example:${await deadPort()}/` }, { guard });
    open.push(sink);
    expect((await send(sink)).outcome).toMatchObject({
      kind: "retry",
      code: "connection_refused",
      error: expect.stringContaining("ECONNREFUSED"),
    });
  });

  it("a message that waited for a connection past its deadline is never sent later", async () => {
    let release: () => void = () => undefined;
    const receiver = await httpReceiver((_seen, _request, response) => {
      release = () => response.end("ok");
    });
    const sink = sinkTo(receiver, 1);
    const first = send(sink, { payload: '"first"' });
    await expect.poll(() => receiver.seen.length).toBe(1);
    const second = await send(sink, { payload: '"second"' }, 100);
    expect(second.outcome).toMatchObject({ kind: "retry", code: "connect_timeout" });
    release();
    expect((await first).outcome.kind).toBe("delivered");
    await pause(100);
    expect(receiver.seen.map((seen) => String(seen.body))).toEqual(['"first"']);
  });
});

describe("fault 30: tarpits", () => {
  it("no headers at all: one total deadline, unknown, and the connection is closed", async () => {
    let closed = 0;
    const receiver = await rawReceiver((socket) => socket.on("data", () => undefined).on("close", () => closed++));
    const { outcome, tookMs } = await send(sinkTo(receiver), {}, 200);
    expect(outcome).toMatchObject({ kind: "unknown", code: "timeout" });
    expect(tookMs).toBeGreaterThan(150);
    await expect.poll(() => closed).toBe(1);
  });

  it("headers that trickle in: the deadline does not start again with each byte", async () => {
    const text = `HTTP/1.1 200 OK\r\nx-slow: ${"y".repeat(1_000)}\r\n\r\n`;
    let at = 0;
    const receiver = await rawReceiver((socket) => {
      const timer = setInterval(() => socket.write(text[at++] ?? ""), 20);
      socket.on("close", () => clearInterval(timer)).resume();
    });
    const { outcome } = await send(sinkTo(receiver), {}, 300);
    expect(outcome).toMatchObject({ kind: "unknown", code: "timeout" });
    expect(at).toBeLessThan(60); // Of a thousand; fifteen in 300 ms, fewer where the machine is busy.
  });

  it.each([
    [200, "delivered", 2],
    [503, "retry", 30],
  ])("a body that trickles after %d: the status decides, the connection is given up", async (status, kind, heard) => {
    let closed = 0;
    let dots = 0;
    const receiver = await rawReceiver((socket) => {
      socket.once("data", () => {
        socket.write(`HTTP/1.1 ${status} X\r\ncontent-length: 1000\r\n\r\nfirst words`);
        const timer = setInterval(() => {
          dots++;
          socket.write(".");
        }, 100);
        socket.on("close", () => clearInterval(timer)).on("close", () => closed++);
      });
    });
    const sink = sinkTo(receiver);
    await send(sink); // The first one pays for loading undici's parser.
    await expect.poll(() => closed).toBe(1);
    dots = 0;
    const { outcome } = await send(sink, {}, 10_000);
    expect(outcome.kind).toBe(kind);
    if (outcome.kind === "retry") expect(outcome.error).toContain("first words");
    // In tenths of a second of the receiver's own, which stands still where this process does.
    expect(dots).toBeLessThanOrEqual(heard);
    await expect.poll(() => closed).toBe(2);
  });

  it("an abort from outside settles at once and closes the connection", async () => {
    let [asked, closed] = [0, 0];
    const receiver = await rawReceiver((socket) => socket.once("data", () => asked++).on("close", () => closed++));
    const sink = sinkTo(receiver);
    const context = testContext();
    const pending = sink.deliver(testDelivery(), context);
    await expect.poll(() => asked).toBe(1);
    context.abort();
    expect(await pending).toMatchObject({ kind: "unknown", code: "aborted" });
    context[Symbol.dispose]();
    await expect.poll(() => closed).toBe(1);
  });

  it("the sink's own timeout holds when it is shorter than the attempt's", async () => {
    const receiver = await rawReceiver((socket) => socket.on("data", () => undefined));
    const sink = httpSink({ url: receiver.url, timeoutMs: 120 }, { guard: loopbackGuard });
    open.push(receiver, sink);
    const { outcome } = await send(sink, {}, 10_000);
    expect(outcome).toMatchObject({ kind: "unknown", code: "timeout", error: expect.stringContaining("120 ms") });
  });
});

describe("fault 31: far too large", () => {
  it.each([200, 500])("a body of 1 GB after %d: the status decides, a few hundred kB are read", async (status) => {
    let written = 0;
    const block = Buffer.alloc(64 * 1024, "z");
    const receiver = await rawReceiver((socket) => {
      const more = () => {
        while (written < 1e9 && !socket.destroyed) {
          written += block.length;
          if (!socket.write(block)) break;
        }
      };
      socket.once("data", () => {
        socket.write(`HTTP/1.1 ${status} X\r\ncontent-length: 1000000000\r\n\r\n`);
        more();
        socket.on("drain", more);
      });
    });
    const rssBefore = process.memoryUsage().rss;
    const { outcome } = await send(sinkTo(receiver), {}, 5_000);
    expect(outcome.kind).toBe(status === 200 ? "delivered" : "retry");
    if (outcome.kind === "retry") expect(Buffer.byteLength(outcome.error)).toBeLessThan(1_100);
    await pause(200);
    expect(written).toBeLessThan(20e6);
    expect(process.memoryUsage().rss - rssBefore).toBeLessThan(100e6);
  });

  it.each([200, 500])("a gzip bomb after %d is not decompressed", async (status) => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const receiver = await httpReceiver((_seen, _request, response) => {
      response.writeHead(status, { "content-encoding": "gzip", "content-length": bomb.length }).end(bomb);
    });
    const { outcome } = await send(sinkTo(receiver));
    expect(outcome.kind).toBe(status === 200 ? "delivered" : "retry");
    if (outcome.kind === "retry") expect(outcome.error).toBe("the receiver answered 500: (a body encoded as gzip)");
  });

  it.each([
    ["100,000 headers", Array.from({ length: 100_000 }, (_, n) => `x-${n}: 1\r\n`).join("")],
    ["one header of 10 MB", `x: ${"y".repeat(10_000_000)}\r\n`],
  ])("%s: not read to the end, retried as a broken answer", async (_name, headers) => {
    const receiver = await cannedReceiver(`HTTP/1.1 200 OK\r\n${headers}\r\n`);
    const { outcome } = await send(sinkTo(receiver));
    expect(outcome).toMatchObject({ kind: "retry", code: "response_invalid" });
  });

  it("an endless chain of 103 answers ends at the deadline", async () => {
    const receiver = await rawReceiver((socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"), 10);
      socket.on("close", () => clearInterval(timer)).resume();
    });
    const { outcome } = await send(sinkTo(receiver), {}, 300);
    expect(outcome).toMatchObject({ kind: "unknown", code: "timeout" });
  });
});

describe("an attempt leaves nothing behind", () => {
  it.each([200, 503, 0])("no timer and no listener after %d", async (status) => {
    const live = new Set<object>();
    const clock: Clock = {
      ...systemClock,
      after(ms, run, background) {
        const one = {};
        live.add(one);
        const timer = systemClock.after(
          ms,
          () => {
            live.delete(one);
            run();
          },
          background,
        );
        return {
          cancel() {
            live.delete(one);
            timer.cancel();
          },
        };
      },
    };
    const receiver = await httpReceiver((_seen, request, response) => {
      if (status === 0) request.socket.destroy();
      else response.writeHead(status).end("words");
    });
    const sink = httpSink({ url: receiver.url }, { guard: loopbackGuard, clock });
    open.push(receiver, sink);
    const { signal } = new AbortController();
    for (let n = 0; n < 5; n++) await sink.deliver(testDelivery(), { signal, timeoutMs: 60_000 });
    await expect.poll(() => live.size).toBe(0);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

describe("connections", () => {
  it("are kept and used again", async () => {
    const receiver = await httpReceiver((_seen, _request, response) => response.end("x".repeat(2_000)));
    const sink = sinkTo(receiver);
    for (let n = 0; n < 20; n++) expect((await send(sink)).outcome.kind).toBe("delivered");
    expect(receiver.connections()).toBeLessThanOrEqual(2); // undici frees a connection one turn after the answer.
  });

  it("are kept after failures with small bodies as well", async () => {
    const receiver = await httpReceiver((_seen, _request, response) => response.writeHead(503).end("busy"));
    const sink = sinkTo(receiver);
    for (let n = 0; n < 10; n++) expect((await send(sink)).outcome.kind).toBe("retry");
    expect(receiver.connections()).toBeLessThanOrEqual(2); // undici frees a connection one turn after the answer.
  });

  it("are bounded", async () => {
    const receiver = await httpReceiver((_seen, _request, response) => setTimeout(() => response.end("ok"), 20));
    const sink = sinkTo(receiver, 4);
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => send(sink)));
    expect(outcomes.every(({ outcome }) => outcome.kind === "delivered")).toBe(true);
    expect(receiver.connections()).toBe(4);
  });

  it("a closed sink lets the attempts under way finish and refuses new ones with an outcome", async () => {
    let release: () => void = () => undefined;
    const receiver = await httpReceiver((_seen, _request, response) => {
      release = () => response.end("ok");
    });
    const sink = sinkTo(receiver);
    const pending = send(sink);
    await expect.poll(() => receiver.seen.length).toBe(1);
    const closed = Promise.all([sink.close?.(), sink.close?.()]);
    release();
    await closed;
    expect((await pending).outcome.kind).toBe("delivered");
    expect((await send(sink)).outcome).toMatchObject({ kind: "unserved", code: "sink_closed" });
  });
});
