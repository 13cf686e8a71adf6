/**
 * What was found by trying the API: refusals that grew with what was sent, and answers that were not the contract's.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { readConfig } from "../../src/server/config/config.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { onPostgres } from "../server/recovery-support.ts";
import { rawExchange, startTestServer, type TestServer } from "../server/support.ts";

let server: TestServer;
let drop: () => Promise<void>;
beforeAll(async () => {
  const made = await onPostgres();
  drop = made.drop;
  server = await startTestServer({}, { store: made.store });
  await server.send("PUT", "/api/v1/topics/a/b", { sink: { kind: "notify" }, paused: true });
});
afterAll(async () => {
  await server.close({ drainMs: 100 });
  await drop();
});

interface Problem {
  readonly code: string;
  readonly errors?: readonly { readonly field?: string; readonly detail: string }[];
  readonly errors_more?: number;
}

const refused = async (method: string, path: string, body: string) => {
  const response = await server.send(method, path, body);
  const text = await response.text();
  return { status: response.status, bytes: text.length, problem: JSON.parse(text) as Problem };
};

describe("C1: a refusal does not grow with what was sent", () => {
  it("one field two million times is one fault", async () => {
    const body = `{"topic":"a/b","payload":1${',"x":1'.repeat(2_000_000)}}`;
    const { status, bytes, problem } = await refused("POST", "/api/v1/messages", body);
    expect([status, problem.code]).toEqual([400, "invalid_message"]);
    expect(bytes).toBeLessThan(2_000);
  });

  it("a thousand messages with faults each: twenty are named, and how many more there are", async () => {
    const messages = Array.from({ length: 1_000 }, () => ({ topic: "nope", payload: 1, priority: 1_000 }));
    const { status, bytes, problem } = await refused("POST", "/api/v1/messages", JSON.stringify({ messages }));
    expect([status, problem.code, problem.errors?.length, problem.errors_more]).toEqual([422, "batch_refused", 20, 1_980]);
    expect(bytes).toBeLessThan(5_000);
  });

  it("one member two million times in a body whose payload is kept as text", async () => {
    for (const [path, body] of [
      ["/api/v1/recovery/ingest", `{"failure_payload":{"raw":"x"}${',"x":1'.repeat(1_000_000)}}`],
      ["/api/v1/messages/0190a000-0000-7000-8000-000000000000/edit", `{"payload":1${',"x":1'.repeat(150_000)}}`],
      ["/api/v1/messages", `{"messages":[{"topic":"a/b","payload":1${',"x":1'.repeat(2_000_000)}}]}`],
    ] as const) {
      const { status, bytes } = await refused("POST", path, body);
      expect([path, status >= 400 && status < 500]).toEqual([path, true]);
      expect(bytes).toBeLessThan(2_000);
    }
  });

  /** Names that are near to nothing, as many as fit into the smallest body. */
  const members = (n: number) => Array.from({ length: n }, (_, i) => `"q${i}":1`).join(",");
  it.each([
    ["POST", "/api/v1/messages", 20_000, (all: string) => `{${all}}`],
    ["POST", "/api/v1/messages", 20_000, (all: string) => `{"messages":[{${all}},{${all}}]}`],
    ["POST", "/api/v1/recovery/suggest", 20_000, (all: string) => `{${all}}`],
    ["POST", "/api/v1/recovery/ingest", 20_000, (all: string) => `{"failure_payload":{"raw":"x"},${all}}`],
    ["POST", "/api/v1/redrives", 20_000, (all: string) => `{"select":{${all}},${all}}`],
    ["PUT", "/api/v1/topics/a/c", 10_000, (all: string) => `{"sink":{${all}},${all}}`],
    ["PUT", "/api/v1/recovery/rules/mine", 20_000, (all: string) => `{${all}}`],
    ["PUT", "/api/v1/recovery/rules/mine", 10_000, (all: string) => `{"name":"x","action":"a","condition":{${all}},${all}}`],
    ["PUT", "/api/v1/recovery/actions/notify_ops", 20_000, (all: string) => `{${all}}`],
    ["PATCH", "/api/v1/recovery/candidates/1", 20_000, (all: string) => `{${all}}`],
  ])("%s %s with %i unknown fields names twenty, and looks for what was meant in twenty", async (method, path, n, body) => {
    const lower = vi.spyOn(String.prototype, "toLowerCase");
    try {
      const { status, bytes, problem } = await refused(method, path, body(members(n)));
      expect([status, problem.code]).toEqual([status === 422 ? 422 : 400, expect.any(String)]);
      expect(problem.errors?.length ?? 0).toBeLessThanOrEqual(20);
      expect(bytes).toBeLessThan(20_000);
      // An edit distance folds two names: one for each field would be hundreds of thousands.
      expect(lower.mock.calls.length).toBeLessThan(20_000);
    } finally {
      lower.mockRestore();
    }
  });

  it("a config file with a thousand mistakes names twenty", async () => {
    const folder = await mkdtemp(join(tmpdir(), "makegood-"));
    try {
      const settings = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`q${i}`, 1]));
      const sink = { kind: "http", url: "http://a.example/" };
      const topics = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`a/b${i}`, { sink, ...settings }]));
      await writeFile(join(folder, "makegood.config.json"), JSON.stringify({ ...settings, topics }));
      const read = await readConfig({ env: {}, cwd: folder });
      expect(read.ok ? [] : read.faults).toHaveLength(21);
      expect(read.ok ? "" : read.faults.at(-1)).toMatch(/^and \d+ more$/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe("C9: every answer is the contract's", () => {
  it("none may be kept by a cache", async () => {
    for (const path of ["/", "/livez", "/api/v1/topics", "/nowhere"]) {
      const response = await fetch(server.url + path);
      expect([path, response.headers.get("cache-control")]).toEqual([path, "no-store"]);
    }
  });

  it.each([
    ["an expectation that is not understood", "GET /livez HTTP/1.1\r\nhost: localhost\r\nexpect: a-pony\r\n\r\n", 417],
    ["a missing Host", "GET /livez HTTP/1.1\r\nconnection: close\r\n\r\n", 400],
    ["a Host that is not ours", "GET /livez HTTP/1.1\r\nhost: elsewhere.example\r\nconnection: close\r\n\r\n", 421],
    ["what is no request line", "hello\r\n\r\n", 400],
    ["a version that nobody speaks", "GET / HTTP/9.9\r\nhost: localhost\r\n\r\n", 400],
    ["a method that nobody knows", "BREW /pot HTTP/1.1\r\nhost: localhost\r\n\r\n", 400],
    ["a method that is not possible", "DELETE /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 405],
    ["a tunnel", "CONNECT example.com:443 HTTP/1.1\r\nhost: localhost\r\n\r\n", 405],
    ["a request line without a path", "OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 400],
    ["a header that is none", "GET / HTTP/1.1\r\nhost: localhost\r\n: x\r\n\r\n", 400],
    ["two lengths", "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400],
    ["headers without end", `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(70_000)}\r\n\r\n`, 431],
  ])("%s is a problem, and not for a cache", async (_what, request, status) => {
    const answer = await rawExchange(server.port, [request], 500);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toContain("content-type: application/problem+json");
    expect(answer).toContain("cache-control: no-store");
    const body = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))) as { status: number; code: string };
    expect(body).toMatchObject({ status, code: expect.any(String) as string });
  });

  it("answers a proxy's absolute form, HEAD without a body, and a path whose escapes are none", async () => {
    const absolute = await rawExchange(server.port, [
      "GET http://localhost/livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ]);
    expect(absolute).toMatch(/^HTTP\/1.1 200 [\s\S]*\r\n\r\nok\n$/);
    const head = await rawExchange(server.port, ["HEAD /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"]);
    expect(head).toMatch(/^HTTP\/1.1 200 [\s\S]*content-length: 3\r\n[\s\S]*\r\n\r\n$/);
    expect((await server.api("/api/v1/messages/%E0%A4%A")).status).toBe(404);
  });

  it("readiness tells nobody where the database is", async () => {
    const env = { DATABASE_URL: "postgres://makegood:hunter2@127.0.0.1:9/makegood" };
    const away = createPostgresStore({ url: env.DATABASE_URL });
    const other = await startTestServer(env, { store: away });
    try {
      const response = await other.api("/readyz?verbose");
      const text = await response.text();
      expect([response.status, response.headers.get("cache-control")]).toEqual([503, "no-store"]);
      expect(text).not.toMatch(/127\.0\.0\.1|:9\b|hunter2/);
    } finally {
      await other.close({ drainMs: 100 });
    }
  });
});
