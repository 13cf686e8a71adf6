/** What may be saved as a sink (attack 7 among it), what createSink makes of it, and the notify sink's text. */
import { describe, expect, it } from "vitest";
import { oneLine } from "../../src/message/one-line.ts";
import type { SinkConfig } from "../../src/message/topic.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { createAddressGuard } from "../../src/sink/address-guard.ts";
import { checkSink } from "../../src/sink/check-sink.ts";
import { checkHeaders } from "../../src/sink/check-target.ts";
import { notifyText } from "../../src/sink/notify.ts";
import { faultText } from "../../src/sink/sink-kind.ts";
import { createSink } from "../../src/sink/sinks.ts";
import { generateSecret } from "../../src/webhook/secret.ts";
import { httpReceiver, send } from "./receiver.ts";

const guard = createAddressGuard();
const lines: string[] = [];
const deps = { guard, clock: systemClock, random: systemRandom, log: (line: string) => lines.push(line) };
const url = "https://example.com/hook";
const secrets = [generateSecret()];

describe("attack 7: headers at save", () => {
  it.each([
    ["CR LF", { "x-a": "a\r\nhost: evil" }],
    ["a bare LF", { "x-a": "a\nb" }],
    ["a bare CR", { "x-a": "a\rb" }],
    ["NUL", { "x-a": "a\0b" }],
    ["ESC", { "x-a": "\u001b[31m" }],
    ["more than Latin-1", { "x-a": "漢" }],
    ["a value that is not text", { "x-a": 1 }],
    ["CR LF in a name", { "x-a\r\nhost": "evil" }],
    ["a space in a name", { "x a": "b" }],
    ["a colon in a name", { "x:a": "b" }],
    ["an empty name", { "": "b" }],
    ["one name twice", { "X-A": "1", "x-a": "2" }],
    ["33 of them", Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`x-${n}`, "1"]))],
    ["10 kB of them", { "x-a": "y".repeat(10_000) }],
    ["an array", ["x"]],
    ["null", null],
  ])("%s is refused", (_name, headers) => {
    expect(checkHeaders(headers)).not.toBeNull();
    expect(checkSink({ kind: "http", url, headers } as SinkConfig, guard)).toHaveLength(1);
  });

  it.each([
    "Host",
    "Content-Length",
    "content-encoding",
    "Transfer-Encoding",
    "Connection",
    "Keep-Alive",
    "Upgrade",
    "TE",
    "Trailer",
    "Expect",
    "Idempotency-Key",
    "traceparent",
    "Makegood-Attempt",
    "makegood-anything",
    "Webhook-Id",
    "webhook-signature",
    "WEBHOOK-X",
    "Proxy-Authorization",
  ])("%s is reserved", (name) => {
    expect(checkHeaders({ [name]: "x" })).toMatch(/set by the sink/);
  });

  it("ordinary headers pass, and prototypes stay what they are", () => {
    expect(checkHeaders({ Authorization: "Bearer x", "X-Plain": "café\tx", "content-type": "text/plain" })).toBeNull();
    expect(checkHeaders(JSON.parse('{"__proto__":"x","constructor":"y"}'))).toBeNull();
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });
});

describe("checkSink", () => {
  it.each<[string, unknown, number]>([
    ["an http sink", { kind: "http", url }, 0],
    [
      "an http sink with everything",
      { kind: "http", url, timeoutMs: 5_000, headers: { a: "b" }, statusMap: { "409": "duplicate" }, onUnknown: "hold" },
      0,
    ],
    ["a webhook sink", { kind: "webhook", url, secrets }, 0],
    ["a notify sink that logs", { kind: "notify" }, 0],
    ["a notify sink with a url", { kind: "notify", url }, 0],
    ["a function sink", { kind: "function" }, 0],
    ["a trusted sink at home", { kind: "http", url: "http://localhost:3000/", trusted: true }, 0],
    ["an unknown kind", { kind: "smtp", url }, 1],
    ["no kind", { url }, 1],
    ["http without a url", { kind: "http" }, 1],
    ["http with an empty url", { kind: "http", url: "" }, 1],
    ["a url that is not text", { kind: "http", url: 7 }, 1],
    ["webhook without a url or secrets", { kind: "webhook" }, 2],
    ["webhook without secrets", { kind: "webhook", url, secrets: [] }, 1],
    ["webhook with a bad secret", { kind: "webhook", url, secrets: ["whsec_short"] }, 1],
    ["webhook with too many secrets", { kind: "webhook", url, secrets: Array.from({ length: 11 }, () => generateSecret()) }, 1],
    ["webhook with a statusMap", { kind: "webhook", url, secrets, statusMap: { "409": "retry" } }, 1],
    ["http with secrets", { kind: "http", url, secrets }, 1],
    ["a private url", { kind: "http", url: "http://10.0.0.1/" }, 1],
    ["metadata, trusted", { kind: "http", url: "http://169.254.169.254/", trusted: true }, 1],
    ["a timeout of zero", { kind: "http", url, timeoutMs: 0 }, 1],
    ["a negative timeout", { kind: "http", url, timeoutMs: -1 }, 1],
    ["a timeout that is not a number", { kind: "http", url, timeoutMs: "5" }, 1],
    ["an endless timeout", { kind: "http", url, timeoutMs: Number.POSITIVE_INFINITY }, 1],
    ["NaN as timeout", { kind: "http", url, timeoutMs: Number.NaN }, 1],
    [
      "a statusMap with a bad status and a bad outcome",
      { kind: "http", url, statusMap: { "4xx": "retry", "100": "retry", "404": "lost" } },
      3,
    ],
    ["a statusMap that is a list", { kind: "http", url, statusMap: ["retry"] }, 1],
    ["a bad onUnknown", { kind: "http", url, onUnknown: "drop" }, 1],
    ["everything wrong at once", { kind: "webhook", url: "ftp://x/", timeoutMs: 0, headers: { host: "x" }, secrets: ["x"] }, 4],
  ])("%s: %#", (_name, config, reasons) => {
    expect(checkSink(config as SinkConfig, guard, "code")).toHaveLength(reasons);
  });

  it("names the setting, and the kinds that there are", () => {
    expect(checkSink({ kind: "smtp" }, guard)).toEqual([{ field: "kind", detail: "must be one of http, webhook, notify" }]);
    expect(checkSink({ kind: "constructor" }, guard, "code")).toEqual([
      { field: "kind", detail: "must be one of http, webhook, notify, function" },
    ]);
    expect(checkSink({} as SinkConfig, guard)[0]?.detail).toMatch(/^is missing: one of http, /);
    expect(checkSink({ kind: "http", url, timeoutMs: 1.5, statusMap: { "99": "retry" } }, guard).map(faultText)).toEqual([
      "timeoutMs must be a whole number from 1 to 43200000",
      "statusMap.99 is not a final HTTP status",
    ]);
  });

  it("takes a function only from code", () => {
    expect(checkSink({ kind: "function" }, guard)).toMatchObject([{ field: "kind" }]);
  });

  it("never quotes a secret", () => {
    const reasons = checkSink({ kind: "webhook", url, secrets: ["whsec_hunter2"] }, guard)
      .map(faultText)
      .join();
    expect(reasons).not.toContain("hunter2");
  });
});

describe("createSink", () => {
  it.each(["http", "webhook", "notify"] as const)("makes a %s sink that delivers", async (kind) => {
    const receiver = await httpReceiver();
    const sink = createSink({ kind, url: receiver.url, trusted: true, secrets: kind === "webhook" ? secrets : undefined }, deps);
    expect(sink.kind).toBe(kind);
    expect((await send(sink, { payload: '{"text":"hi"}' })).outcome.kind).toBe("delivered");
    expect(receiver.seen[0]?.body.toString()).toBe('{"text":"hi"}');
    expect(sink.probe).toBeUndefined();
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });

  it("throws sink_refused for what can never work", () => {
    for (const config of [
      { kind: "http" },
      { kind: "function" },
      { kind: "webhook", url },
      { kind: "http", url, timeoutMs: 0 },
    ]) {
      expect(() => createSink(config as SinkConfig, deps)).toThrow(expect.objectContaining({ code: "sink_refused" }));
    }
  });

  it("makes a sink for a refused address, which serves nothing here", async () => {
    const sink = createSink({ kind: "http", url: "http://10.0.0.1/" }, deps);
    expect((await send(sink)).outcome).toMatchObject({ kind: "unserved", code: "address_refused" });
    await sink.close?.();
  });
});

describe("notify", () => {
  it("without a url writes one line to the log", async () => {
    lines.length = 0;
    const sink = createSink({ kind: "notify" }, deps);
    expect((await send(sink, { id: "m1", topic: "ops/alerts", payload: '{"text":"disk\\n\\u001b[2Jfull"}' })).outcome.kind).toBe(
      "delivered",
    );
    expect((await send(sink, { id: "m2", topic: "ops/alerts", payload: '{\n"a":1}' })).outcome.kind).toBe("delivered");
    expect(lines).toEqual(["notify ops/alerts m1: disk\\n\\u001b[2Jfull", 'notify ops/alerts m2: {\\n"a":1}']);
  });

  it("takes the payload's own text, or a summary that cannot ping anybody", () => {
    const of = (payload: string) => notifyText({ id: "m1", topic: "ops/alerts", payload });
    expect(of('{"text":"<!here> *bold*"}')).toBe("<!here> *bold*");
    expect(of('{"who":"<!channel> & co"}')).toBe('ops/alerts m1: {"who":"&lt;!channel&gt; &amp; co"}');
    expect(of('{"text":7}')).toBe('ops/alerts m1: {"text":7}');
    expect(of("null")).toBe("ops/alerts m1: null");
    expect(of("not json")).toBe("ops/alerts m1: not json");
    expect(of(JSON.stringify("x".repeat(100_000))).length).toBeLessThan(1_100);
    expect(of(JSON.stringify({ text: "é".repeat(100_000) })).length).toBe(20_000);
  });
});

describe("one line", () => {
  it.each([
    ["plain", 100, "plain"],
    ["a\r\n\tb", 100, "a\\r\\n\\tb"],
    ["\0\u001b[31m\u007f\u0085\u009b", 100, "\\u0000\\u001b[31m\\u007f\\u0085\\u009b"],
    ["a\u2028b\u202Ec\u2066", 100, "a\\u2028b\\u202ec\\u2066"],
    ["\ud800x", 100, "\\ud800x"],
    ["😀é", 100, "😀é"],
    ["éééééé", 8, "éé…"],
    ["abcdefghij", 8, "abcde…"],
  ])("%j in %d bytes is %j", (text, bytes, expected) => {
    expect(oneLine(text, bytes)).toBe(expected);
    expect(Buffer.byteLength(oneLine(text, bytes))).toBeLessThanOrEqual(bytes);
  });
});
