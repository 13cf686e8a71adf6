/**
 * Who may ask: tokens, the Host header, other origins, and methods that an address does not have (attacks 12, 13, 14, 19).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApp } from "../../src/server/app.ts";
import { isAllowedHost, parseTokens, tokenOf } from "../../src/server/auth.ts";
import { readConfig } from "../../src/server/config/config.ts";
import { rawExchange, startTestServer, type TestServer } from "./support.ts";

const SECRET = "alice-secret-0123456789";
let open: TestServer;
let closed: TestServer;

beforeAll(async () => {
  open = await startTestServer();
  closed = await startTestServer({ MAKEGOOD_TOKENS: `alice:${SECRET},bob:bob-secret-0123456789` });
});
afterAll(() => Promise.all([open.close({ drainMs: 100 }), closed.close({ drainMs: 100 })]));

const ROUTES: [string, string][] = [
  ["GET", "/"],
  ["GET", "/health"],
  ["GET", "/metrics"],
  ["GET", "/api/v1/topics"],
  ["GET", "/api/v1/topics/a/b"],
  ["PUT", "/api/v1/topics/a/b"],
  ["DELETE", "/api/v1/topics/a/b"],
  ["POST", "/api/v1/topics/a/b/pause"],
  ["GET", "/api/v1/messages"],
  ["POST", "/api/v1/messages"],
  ["GET", "/api/v1/messages/x"],
  ["POST", "/api/v1/messages/x/replay"],
  ["POST", "/api/v1/store/acknowledge-loss"],
  ["GET", "/nowhere"],
  ["PATCH", "/api/v1/messages"],
];

describe("tokens (attack 12)", () => {
  it.each(ROUTES)("%s %s is 401 without one and with a wrong one", async (method, path) => {
    for (const authorization of [
      undefined,
      "Bearer wrong",
      `Basic ${btoa(`alice:${SECRET}`)}`,
      `Bearer ${SECRET}x`,
      "Bearer ",
      SECRET,
    ]) {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      const response = await closed.api(path, { method, headers });
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toContain("Bearer");
      expect(await response.json()).toMatchObject({ code: "unauthorized" });
    }
  });

  it("opens everything with the right one, and the probes without", async () => {
    for (const path of ["/livez", "/readyz"]) expect((await closed.api(path)).status).toBe(200);
    for (const secret of [SECRET, "bob-secret-0123456789"]) {
      const response = await closed.api("/api/v1/messages", { headers: { authorization: `Bearer ${secret}` } });
      expect(response.status).toBe(200);
    }
  });

  it("never shows a secret, in an answer or in the log", async () => {
    await closed.api(`/api/v1/messages?token=${SECRET}`, { headers: { authorization: `Bearer ${SECRET}` } });
    expect(closed.lines.join("")).not.toContain(SECRET);
  });

  it("keeps digests, tells all faults, and compares as a whole", () => {
    const { tokens, faults } = parseTokens("short:abc,nocolon,:namelessnamelessname,ok:0123456789abcdef,ok:0123456789abcdef");
    expect(tokens.map(({ name }) => name)).toEqual(["ok"]);
    expect(faults).toHaveLength(4);
    expect(faults.join()).not.toContain("abc,");
    expect(JSON.stringify(tokens)).not.toContain("0123456789abcdef");
    expect(tokenOf("Bearer 0123456789abcdef", tokens)?.name).toBe("ok");
    expect(tokenOf("bearer 0123456789abcdef", tokens)?.name).toBe("ok");
    expect(tokenOf("Bearer 0123456789abcde", tokens)).toBeNull();
    expect(tokenOf(null, tokens)).toBeNull();
    expect(parseTokens("system:0123456789abcdef"), "nobody acts in the engine's name").toMatchObject({
      tokens: [],
      faults: [expect.stringContaining("what the server calls itself")],
    });
  });

  it("a token with an end is refused from then on, and only its holder is told", async () => {
    const { tokens, faults } = parseTokens(
      "a:0123456789abcdef;expires=2027-01-31,b:1123456789abcdef;expires=2027-01-31T12:30Z,c:2;expires=nevernevernever,d:3123456789abcdef;expires=2027-13-01",
    );
    expect(tokens.map(({ name, expiresMs }) => [name, expiresMs])).toEqual([
      ["a", Date.UTC(2027, 1, 1)],
      ["b", Date.UTC(2027, 0, 31, 12, 30)],
    ]);
    expect(faults).toEqual([
      "the secret of c is shorter than 16 characters",
      expect.stringMatching(/^the expiry of d is no date/),
    ]);
    const soon = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    await using server = await startTestServer({
      MAKEGOOD_TOKENS: `old:${SECRET};expires=2020-01-31,new:another-secret-0123456789;expires=${soon}`,
    });
    const ask = async (secret: string) => {
      const answer = await server.api("/metrics", { headers: { authorization: `Bearer ${secret}` } });
      return [answer.status, await answer.text()] as const;
    };
    expect(await ask(SECRET)).toEqual([401, expect.stringContaining("the token old expired at 2020-02-01T00:00:00.000Z")]);
    expect(await ask(`${SECRET}x`)).toEqual([401, expect.not.stringContaining("expired")]);
    const [status, metrics] = await ask("another-secret-0123456789");
    expect(status).toBe(200);
    expect(metrics).toContain(`makegood_token_expires_timestamp_seconds{token="old"} ${Date.UTC(2020, 1, 1) / 1_000}\n`);
    expect(metrics).toContain(`makegood_token_expires_timestamp_seconds{token="new"} ${Date.parse(soon) / 1_000 + 86_400}\n`);
  });

  it("refuses to start on another address without one", async () => {
    for (const host of ["0.0.0.0", "::", "192.168.1.2", "example.com"]) {
      const read = await readConfig({ env: { MAKEGOOD_HOST: host }, cwd: "/nonexistent" });
      expect(read.ok ? "" : read.faults.join()).toContain("MAKEGOOD_TOKENS");
    }
    for (const host of ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"]) {
      expect((await readConfig({ env: { MAKEGOOD_HOST: host }, cwd: "/nonexistent" })).ok).toBe(true);
    }
  });
});

describe("the Host header (attack 13)", () => {
  const ask = (method: string, path: string, host: string) =>
    rawExchange(open.port, [`${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`]);

  it.each([...ROUTES, ["GET", "/livez"], ["GET", "/readyz"]])("%s %s is 421 for evil.example", async (method, path) => {
    expect(await ask(method, path, "evil.example")).toMatch(/^HTTP\/1\.1 421 .*misdirected_request/s);
  });

  it("takes the names of loopback with any port", async () => {
    for (const host of ["localhost", "LOCALHOST:1", "127.0.0.1:9999", "[::1]:80", "127.0.0.1"]) {
      expect(await ask("GET", "/livez", host)).toMatch(/^HTTP\/1\.1 200 /);
    }
    for (const host of [
      "127.0.0.1.evil.example",
      "localhost.evil",
      "0.0.0.0",
      "localhost@evil",
      "evil:localhost",
      "[::1",
      "",
      "localhost.",
    ]) {
      expect(await ask("GET", "/livez", host)).toMatch(/^HTTP\/1\.1 4(00|21) /);
    }
  });

  it("cannot be got around by an absolute request target", async () => {
    const raw = await rawExchange(open.port, [
      "GET http://localhost/livez HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n",
    ]);
    expect(raw).toMatch(/^HTTP\/1\.1 4/);
  });

  it("follows MAKEGOOD_HOSTS, and elsewhere allows addresses and the bound name", () => {
    const loopback = { bound: "127.0.0.1", names: ["makegood.internal"] };
    expect(isAllowedHost("makegood.internal:4600", loopback)).toBe(true);
    expect(isAllowedHost("10.0.0.5", loopback)).toBe(false);
    const any = { bound: "0.0.0.0", names: [] };
    expect(isAllowedHost("10.0.0.5:4600", any)).toBe(true);
    expect(isAllowedHost("[fd00::1]:4600", any)).toBe(true);
    expect(isAllowedHost("rebound.example", any)).toBe(false);
    const named = { bound: "0.0.0.0", names: ["api.example"] };
    expect(isAllowedHost("api.example", named)).toBe(true);
    expect(isAllowedHost("10.0.0.5", named)).toBe(false);
    expect(isAllowedHost(null, any)).toBe(false);
  });
});

describe("other origins (attack 14)", () => {
  const post = (headers: Record<string, string>) =>
    open.send("POST", "/api/v1/messages", { topic: "no/such", payload: 1 }, headers);

  it("may not change anything", async () => {
    for (const headers of [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: "http://evil.example" },
      { origin: "null" },
      { origin: "http://localhost:3000" },
    ] as Record<string, string>[]) {
      const response = await post(headers);
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ code: "cross_origin_refused" });
    }
  });

  it("are told apart from our own and from programs", async () => {
    for (const headers of [{}, { origin: open.url }, { "sec-fetch-site": "same-origin" }, { "sec-fetch-site": "none" }] as Record<
      string,
      string
    >[]) {
      expect((await post(headers)).status).toBe(422);
    }
    expect((await open.api("/api/v1/topics", { headers: { "sec-fetch-site": "cross-site" } })).status).toBe(200);
  });
});

describe("addresses and methods", () => {
  it.each([
    ["DELETE", "/api/v1/messages", "HEAD, GET, POST"],
    ["POST", "/api/v1/topics/a/b", "HEAD, GET, PUT, DELETE"],
    ["GET", "/api/v1/messages/x/replay", "POST"],
    ["POST", "/livez", "HEAD, GET"],
    ["OPTIONS", "/api/v1/messages", "HEAD, GET, POST"],
  ])("%s %s is 405 and says what is allowed", async (method, path, allow) => {
    const response = await open.api(path, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, allow]);
    expect(await response.json()).toMatchObject({ code: "method_not_allowed", instance: path });
  });

  it("answers HEAD like GET, without a body", async () => {
    const response = await open.api("/livez", { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });

  it("is 404 in problem+json elsewhere", async () => {
    for (const path of [
      "/nowhere",
      "/api/v2/messages",
      "/api/v1/topics/onlyone",
      "/api/v1/messages/x/y/z",
      "/%00",
      "//",
      "/..;/",
    ]) {
      const response = await open.api(path);
      expect([response.status, response.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
    }
  });

  it("shows nothing of an unexpected error, and logs all of it", async () => {
    const lines: unknown[] = [];
    const log = { debug() {}, info() {}, warn() {}, error: (...line: unknown[]) => void lines.push(line) };
    const list = () => Promise.reject(new Error("secret detail"));
    const mg = { ...open.mg, store: { ...open.store, list } };
    const { systemClock } = await import("../../src/platform/clock.ts");
    const kernel = {
      mg,
      recovery: null,
      log,
      clock: systemClock,
      version: "0",
      payloadBytesMax: 1,
      checkSink: () => [],
      deadLettersMax: 100,
      dispatcher: () => null,
      draining: () => false,
      abandoned: async () => false,
    };
    const app = createApp({ kernel, tokens: [], anonymous: "local", hosts: null });
    const response = await app.fetch(new Request("http://localhost/api/v1/messages"));
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("secret detail");
    expect(lines).toHaveLength(1);
    app.close();
  });
});
