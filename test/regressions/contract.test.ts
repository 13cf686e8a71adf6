/**
 * What was found by trying the API: refusals that grew with what was sent, and answers that were not the contract's.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rawExchange, startTestServer, type TestServer } from "../server/support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await server.send("PUT", "/api/v1/topics/a/b", { sink: { kind: "notify" }, paused: true });
});
afterAll(() => server.close({ drainMs: 100 }));

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

  const unknown = `{${Array.from({ length: 5_000 }, (_, i) => `"reasom${i}":1`).join(",")}}`;
  it.each([
    ["POST", "/api/v1/recovery/suggest"],
    ["POST", "/api/v1/redrives"],
    ["PUT", "/api/v1/topics/a/c"],
  ])("%s %s with 5,000 unknown fields", async (method, path) => {
    const { status, bytes, problem } = await refused(method, path, unknown);
    expect([status, problem.errors?.length]).toEqual([400, 20]);
    expect(problem.errors_more).toBeGreaterThanOrEqual(4_980);
    expect(bytes).toBeLessThan(5_000);
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
  ])("%s is a problem", async (_what, request, status) => {
    const answer = await rawExchange(server.port, [request], 500);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toContain("application/problem+json");
  });
});
