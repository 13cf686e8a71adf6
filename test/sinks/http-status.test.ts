/** Fault 32: every status, bad HTTP, Retry-After in all its forms; and what a request carries. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpSink } from "../../src/sink/http.ts";
import { headerText, traceparentOf } from "../../src/sink/request-headers.ts";
import { retryAfterMs } from "../../src/sink/retry-after.ts";
import type { Sink } from "../../src/sink/sink.ts";
import type { StatusMap } from "../../src/sink/verdict.ts";
import { webhookSink } from "../../src/sink/webhook.ts";
import { testDelivery } from "../../src/testing/sink-conformance.ts";
import { generateSecret } from "../../src/webhook/secret.ts";
import {
  cannedReceiver,
  deadPort,
  httpReceiver,
  type Listening,
  loopbackGuard,
  rawReceiver,
  type Seen,
  send,
} from "./receiver.ts";

const deps = { guard: loopbackGuard };

describe("fault 32: the status zoo", () => {
  let receiver: Listening & { readonly seen: Seen[] };
  let answers: { status: number; headers?: Record<string, string>; body?: string } = { status: 200 };
  beforeAll(async () => {
    receiver = await httpReceiver((_seen, _request, response) => {
      response.writeHead(answers.status, answers.headers).end(answers.body ?? "");
    });
  });
  afterAll(() => receiver[Symbol.asyncDispose]());

  const outcomeOf = async (make: (url: string) => Sink) => {
    const sink = make(receiver.url);
    const { outcome } = await send(sink);
    await sink.close?.();
    return outcome;
  };
  const http = (statusMap?: StatusMap) => outcomeOf((url) => httpSink({ url, statusMap }, deps));
  const webhook = () => outcomeOf((url) => webhookSink({ url, secrets: [generateSecret()] }, deps));

  const RETRIED = [401, 403, 408, 409, 425, 429, 500, 501, 502, 503, 504, 520, 599];
  const REJECTED = [300, 301, 302, 303, 304, 307, 308, 400, 402, 404, 405, 406, 410, 411, 413, 415, 418, 422, 426, 431, 451, 499];

  it.each([200, 201, 202, 203, 204, 205, 206, 226, 299])("%d is delivered", async (status) => {
    answers = { status };
    expect(await http()).toEqual({ kind: "delivered" });
    expect(await webhook()).toEqual({ kind: "delivered" });
  });

  it.each(RETRIED)("%d is retried, and alerts when it is about credentials", async (status) => {
    answers = { status, body: "try\r\nlater\u001b[31m" };
    const alert = status === 401 || status === 403;
    const expected = {
      kind: "retry",
      code: `http_${status}`,
      error: `the receiver answered ${status}: try\\r\\nlater\\u001b[31m`,
      alert,
    };
    // 409 says that the receiver is there: no reason to hold others back.
    const receiver = status === 409 ? { receiver: "answers" } : {};
    expect(await http()).toEqual({ ...expected, ...receiver, retryAfterMs: undefined });
    expect(await webhook()).toMatchObject(expected);
  });

  it.each(REJECTED)("%d is rejected by http; webhook retries it, and 410 disables", async (status) => {
    answers = { status };
    expect(await http()).toEqual({ kind: "reject", code: `http_${status}`, error: `the receiver answered ${status}` });
    expect(await webhook()).toMatchObject({ kind: status === 410 ? "disable" : "retry", code: `http_${status}` });
  });

  it("lets the statusMap override, in both directions", async () => {
    answers = { status: 409 };
    expect(await http({ "409": "duplicate" })).toEqual({ kind: "duplicate" });
    expect(await http({ "409": "reject" })).toMatchObject({ kind: "reject", code: "http_409" });
    expect(await http({ "409": "unknown" })).toMatchObject({ kind: "unknown", code: "http_409" });
    answers = { status: 202 };
    expect(await http({ "202": "retry" })).toMatchObject({ kind: "retry", code: "http_202" });
    answers = { status: 404 };
    expect(await http({ "404": "delivered" })).toEqual({ kind: "delivered" });
  });

  it.each([
    ["0", 0],
    ["-1", 0],
    ["7", 7_000],
    ["315360000", 315_360_000_000],
    ["soon", undefined],
    ["", undefined],
  ])("Retry-After %j becomes %j ms", async (value, expected) => {
    answers = { status: 503, headers: { "retry-after": value } };
    const outcome = await http();
    expect(outcome).toMatchObject({ kind: "retry", code: "http_503" });
    expect(outcome.kind === "retry" && outcome.retryAfterMs).toBe(expected);
  });

  it("Retry-After as a date counts from the clock that was injected", async () => {
    const at = Date.parse("2030-01-02T03:04:05Z");
    answers = { status: 429, headers: { "retry-after": new Date(at).toUTCString() } };
    const clock = { wallMs: () => at - 90_000, monotonicMs: () => performance.now(), after: later };
    const outcome = await outcomeOf((url) => httpSink({ url }, { ...deps, clock }));
    expect(outcome).toMatchObject({ kind: "retry", retryAfterMs: 90_000 });
  });

  it("shows a bounded, single line of the body without our own credentials", async () => {
    answers = { status: 500, body: `Bearer s3cr3t-t0ken was wrong\u0000 ${"é".repeat(3_000)}` };
    const outcome = await outcomeOf((url) => httpSink({ url, headers: { Authorization: "Bearer s3cr3t-t0ken" } }, deps));
    const error = outcome.kind === "retry" ? outcome.error : "";
    expect(error).toContain("Bearer [redacted] was wrong\\u0000 éé");
    expect(Buffer.byteLength(error)).toBeLessThan(1_100);
  });
});

describe("fault 32: Retry-After", () => {
  const now = Date.parse("1994-11-06T08:49:00Z");
  it.each([
    ["Sun, 06 Nov 1994 08:49:37 GMT", 37_000],
    ["Sunday, 06-Nov-94 08:49:37 GMT", 37_000],
    ["Sun Nov  6 08:49:37 1994", 37_000],
    ["Sun, 06 Nov 1994 08:48:00 GMT", 0],
    ["Thu, 04 Nov 2004 08:49:00 GMT", 315_446_400_000],
    ["1.5", 1_500],
    ["retry 5", undefined],
    ["Mon, 99 Foo 1994 99:99:99 GMT", undefined],
    ["1e9", undefined],
    ["999999999999999999999999", undefined],
  ])("%j → %j", (text, expected) => {
    expect(retryAfterMs(text, now)).toBe(expected);
  });
});

describe("fault 32: bad HTTP is an outcome", () => {
  it.each([
    ["not HTTP at all", "SSH-2.0-OpenSSH_9.2\r\n", "retry", "response_invalid"],
    ["a bad status line", "HTTP/1.1 abc OK\r\n\r\n", "retry", "response_invalid"],
    ["a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "retry", "response_invalid"],
    ["a header without a colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "retry", "response_invalid"],
    ["NUL in a header", "HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n", "retry", "response_invalid"],
    [
      "length and chunked together",
      "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      "retry",
      "response_invalid",
    ],
    [
      "two lengths that differ",
      "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
      "retry",
      "response_invalid",
    ],
    ["an unasked-for 100", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "retry", "response_invalid"],
    ["an unasked-for 101", "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "retry", "response_invalid"],
    ["half a status line", "HTTP/1.1 20", "unknown", "connection_reset"],
    ["nothing", "", "unknown", "connection_reset"],
    ["a 2xx whose body ends early", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc", "delivered", undefined],
    ["a 503 whose body ends early", "HTTP/1.1 503 No\r\ncontent-length: 100\r\n\r\nabc", "retry", "http_503"],
    ["a 2xx with a bad chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n", "delivered", undefined],
    [
      "102 and 103 before a 200",
      "HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
      "delivered",
      undefined,
    ],
    ["HTTP/1.0 without a length", "HTTP/1.0 200 OK\r\n\r\nbody", "delivered", undefined],
  ])("%s", async (_name, text, kind, code) => {
    const receiver = await cannedReceiver(text);
    const sink = httpSink({ url: receiver.url }, deps);
    const { outcome } = await send(sink);
    expect(outcome).toMatchObject(code === undefined ? { kind } : { kind, code });
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });

  it("a second, unasked-for answer does not answer the next message", async () => {
    let requests = 0;
    const answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    const twice = await rawReceiver((socket) =>
      socket.on("data", () => {
        requests++;
        socket.write(answer + answer);
      }),
    );
    const sink = httpSink({ url: twice.url, connectionsMax: 1 }, deps);
    for (let n = 1; n <= 5; n++) {
      expect((await send(sink)).outcome.kind).toBe("delivered");
      expect(requests).toBe(n);
    }
    await sink.close?.();
    await twice[Symbol.asyncDispose]();
  });

  it("not connected is retried: refused, and a name that does not exist", async () => {
    const refused = httpSink({ url: `http://127.0.0.1:${await deadPort()}/` }, deps);
    expect((await send(refused)).outcome).toMatchObject({ kind: "retry", code: "connection_refused" });
    const nobody = httpSink({ url: "http://no-such-host.invalid/" }, deps);
    expect((await send(nobody)).outcome).toMatchObject({ kind: "retry", code: "dns" });
    await refused.close?.();
    await nobody.close?.();
  });

  it("a header that slipped past the check is rejected, not retried for ever", async () => {
    const receiver = await httpReceiver();
    const sink = httpSink({ url: receiver.url, headers: { "x-bad": "a\r\nb: c" } }, deps);
    expect((await send(sink)).outcome).toMatchObject({ kind: "reject", code: "request_invalid" });
    expect(receiver.seen).toHaveLength(0);
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });
});

describe("what a request carries", () => {
  it("is a POST with the exact bytes and the documented headers", async () => {
    const receiver = await httpReceiver();
    const sink = httpSink(
      { url: `${receiver.url}in/box?a=1#part`, headers: { "X-Team": "pay", "Content-Type": "application/vnd.x+json" } },
      deps,
    );
    const payload = '{ "é" : "😀\\u0000", "n": 1.0 }';
    const delivery = testDelivery({
      payload,
      key: "k-1",
      idempotencyKey: "k-1",
      tenantId: "acme",
      attempt: 3,
      topic: "billing/finalize",
    });
    await send(sink, delivery);
    const [seen] = receiver.seen;
    expect(seen?.method).toBe("POST");
    expect(seen?.path).toBe("/in/box?a=1");
    expect(seen?.body.equals(Buffer.from(payload))).toBe(true);
    expect(seen?.headers).toMatchObject({
      host: `127.0.0.1:${receiver.port}`,
      "content-type": "application/vnd.x+json",
      "content-length": String(Buffer.byteLength(payload)),
      "idempotency-key": "k-1",
      "makegood-message-id": delivery.id,
      "makegood-topic": "billing/finalize",
      "makegood-attempt": "3",
      "makegood-tenant": "acme",
      "user-agent": "makegood",
      "x-team": "pay",
    });
    const names = (seen?.rawHeaders ?? []).filter((_, at) => at % 2 === 0);
    expect(new Set(names).size, "no header twice").toBe(names.length);
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });

  it("an empty payload is an empty body", async () => {
    const receiver = await httpReceiver();
    const sink = httpSink({ url: receiver.url }, deps);
    expect((await send(sink, { payload: "" })).outcome.kind).toBe("delivered");
    expect(receiver.seen[0]?.headers["content-length"]).toBe("0");
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });

  it("keys of any text become header values, and different keys different values", async () => {
    const keys = ["plain/key:1", "é", "%C3%A9", "a b", " a", "a\r\nx: y", "漢字".repeat(40), "50%", "\u0000", "\ud800", "😀"];
    const values = keys.map(headerText);
    expect(new Set(values).size).toBe(keys.length);
    for (const value of values) expect(value).toMatch(/^[\x21-\x7e]+$/);
    expect(values[0]).toBe("plain/key:1");
    // N23: as the README says.
    expect([headerText("order 7"), headerText("50%")]).toEqual(["order%207", "50%25"]);
    for (const key of keys.filter((one) => one !== "\ud800")) expect(decodeURIComponent(headerText(key))).toBe(key);
    const receiver = await httpReceiver();
    const sink = httpSink({ url: receiver.url }, deps);
    for (const key of keys) expect((await send(sink, { key, idempotencyKey: key })).outcome.kind).toBe("delivered");
    expect(receiver.seen.map((seen) => seen.headers["idempotency-key"])).toEqual(values);
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });

  it("the trace is the message's own, or one made of its id that is the same in every attempt", () => {
    const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    expect(traceparentOf({ id: "x", traceparent: own })).toBe(own);
    const valid = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01$/;
    const uuid = "0198c0de-1234-7abc-8def-0123456789ab";
    expect(traceparentOf({ id: uuid, traceparent: null })).toBe("00-0198c0de12347abc8def0123456789ab-8def0123456789ab-01");
    for (const id of ["m1", "00000000-0000-0000-0000-000000000000", createHash("md5").update("x").digest("hex")]) {
      expect(traceparentOf({ id, traceparent: "nonsense" })).toMatch(valid);
      expect(traceparentOf({ id, traceparent: null })).toBe(traceparentOf({ id, traceparent: "00-bad" }));
    }
  });
});

function later(ms: number, run: () => void, background = false) {
  const handle = setTimeout(run, ms);
  if (background) handle.unref();
  return { cancel: () => clearTimeout(handle) };
}
