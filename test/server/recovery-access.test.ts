/**
 * Who may ask the recovery engine, and where there is none: every route needs a token (DR-34), a store without the records answers 501, a
 * process that has switched it off says so, and PATCH is a method like the others.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ADDRESSES } from "../../src/contract/addresses.ts";
import { onPostgres } from "./recovery-support.ts";
import { startTestServer, type TestServer } from "./support.ts";

const TOKENS = "alice:alice-secret-0123456789";
const ROUTES = Object.values(ADDRESSES)
  .filter(([, path]) => /recovery|redrives|edit$/.test(path))
  .map(([method, path]) => ({ method, path: path.replace("{id}", "1") }));

let closed: TestServer;
let without: TestServer;
let off: TestServer;
const made: Awaited<ReturnType<typeof onPostgres>>[] = [];

beforeAll(async () => {
  for (let i = 0; i < 2; i++) made.push(await onPostgres());
  const [one, other] = made;
  closed = await startTestServer({ MAKEGOOD_TOKENS: TOKENS }, { store: one?.store });
  without = await startTestServer();
  off = await startTestServer({ MAKEGOOD_RECOVERY: "off" }, { store: other?.store });
});
afterAll(async () => {
  await Promise.all([closed, without, off].map((server) => server.close({ drainMs: 100 })));
  for (const { drop } of made) await drop();
});

const ask = (server: TestServer, method: string, path: string, headers: Record<string, string> = {}) =>
  server.api(path, {
    method,
    headers: { "content-type": "application/json", ...headers },
    ...(method === "GET" ? {} : { body: "{}" }),
  });

describe("DR-34: no route without a token", () => {
  it.each(ROUTES)("DR-34: $method $path is 401 without a token and with a wrong one", async ({ method, path }) => {
    for (const headers of [{}, { authorization: "Bearer alice-secret-012345678x" }] as Record<string, string>[]) {
      const response = await ask(closed, method, path, headers);
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([401, "unauthorized"]);
    }
  });

  it("DR-34: the table holds every address of the contract", () => {
    const paths = new Set(ROUTES.map(({ method, path }) => `${method} ${path}`));
    for (const address of [
      "POST /api/v1/recovery/ingest",
      "POST /api/v1/recovery/evaluate",
      "GET /api/v1/recovery/candidates/1",
      "PATCH /api/v1/recovery/candidates/1",
      "DELETE /api/v1/recovery/candidates/1",
      "GET /api/v1/recovery/actions",
      "POST /api/v1/recovery/groups/1/merge",
      "POST /api/v1/recovery/groups/1/split",
      "POST /api/v1/redrives/1/pause",
      "GET /api/v1/recovery/stats",
    ])
      expect(paths).toContain(address);
  });

  it("a page of another origin may not change anything, by PATCH either", async () => {
    const response = await ask(closed, "PATCH", "/api/v1/recovery/candidates/1", { origin: "https://evil.example" });
    expect(response.status).toBe(403);
  });
});

describe("where there is no engine", () => {
  it.each(ROUTES)("$method $path is 501 needs_postgres", async ({ method, path }) => {
    const response = await ask(without, method, path);
    expect([response.status, await response.json()]).toMatchObject([501, { code: "needs_postgres" }]);
  });

  it("says at start which addresses answer 501, and that it is the store or the switch", async () => {
    const said = without.lines.find((line) => line.includes("/api/v1/recovery") && line.includes("501"));
    expect(said).toContain("it needs PostgreSQL, and the store is memory");
    expect(off.lines.some((line) => line.includes("MAKEGOOD_RECOVERY"))).toBe(true);
    const response = await off.api("/api/v1/recovery/stats");
    expect([response.status, await response.json()]).toMatchObject([
      501,
      { code: "needs_postgres", detail: expect.stringContaining("MAKEGOOD_RECOVERY=off") },
    ]);
  });
});

describe("methods", () => {
  it.each([
    ["PUT", "/api/v1/recovery/candidates/1", "HEAD, GET, PATCH, DELETE"],
    ["PATCH", "/api/v1/recovery/rules/x", "HEAD, GET, PUT, DELETE"],
    ["GET", "/api/v1/recovery/ingest", "POST"],
    ["DELETE", "/api/v1/redrives", "HEAD, GET, POST"],
  ])("%s %s is 405 and says what is allowed", async (method, path, allow) => {
    const response = await without.api(path, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, allow]);
  });
});
