/**
 * The topic routes: declare, replace, read, pause, delete; what is refused and why; what is never shown.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PAUSED, STORES, startTestServer, type TestServer } from "./support.ts";

let server: TestServer;

describe.each(STORES)("on the $name store", ({ make }) => {
  let drop: () => Promise<void>;

  beforeAll(async () => {
    const made = await make();
    drop = made.drop;
    server = await startTestServer({}, { store: made.store });
  });
  afterAll(async () => {
    await server.close({ drainMs: 100 });
    await drop();
  });

  const SECRET = `whsec_${Buffer.from("twenty-four random bytes and more").toString("base64")}`;
  const put = (name: string, body: unknown) => server.send("PUT", `/api/v1/topics/${name}`, body);
  const codes = async (response: Response) => {
    const body = (await response.json()) as { code: string; errors?: { field: string; detail: string }[] };
    return { status: response.status, code: body.code, fields: body.errors?.map(({ field }) => field) };
  };

  describe("declaring", () => {
    it("is 201, then 200, and comes back whole with defaults and without secrets", async () => {
      const definition = {
        sink: {
          kind: "webhook",
          url: "http://127.0.0.1:8123/hook",
          timeout_ms: 5_000,
          headers: { "x-a": "1", authorization: "Bearer abc" },
          secrets: [SECRET],
        },
        retry: { policy: "exponential", attempts_max: 3, base_ms: 10, max_ms: 100, jitter: false },
        schema_version: 2,
        lease_ms: 10_000,
        concurrency: 5,
        tenant_concurrency: 2,
        concurrency_total: 9,
        rate_per_second: 2.5,
        tenant_rate_per_second: 0.5,
        ordering: "strict",
        paused: true,
      };
      const created = await put("full/one", definition);
      expect(created.status).toBe(201);
      const text = await created.text();
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain("Bearer abc");
      expect(JSON.parse(text)).toEqual({
        name: "full/one",
        sink: {
          kind: "webhook",
          url: "http://127.0.0.1:8123/hook",
          timeout_ms: 5_000,
          headers: { "x-a": "1", authorization: "[redacted]" },
          secrets_set: 1,
          on_unknown: "retry",
          status_map: null,
        },
        fallback: null,
        compensation: null,
        retry: { policy: "exponential", attempts_max: 3, base_ms: 10, max_ms: 100, jitter: "none", table_ms: null },
        schema_version: 2,
        lease_ms: 10_000,
        concurrency: 5,
        tenant_concurrency: 2,
        concurrency_total: 9,
        rate_per_second: 2.5,
        tenant_rate_per_second: 0.5,
        ordering: "strict",
        money_field: null,
        paused: true,
        source: "api",
        revision: expect.any(Number),
        disabled_reason: null,
        breaker: { state: "closed", probe_in_ms: 0, trips: 0, reason: null, tenants: [] },
        held: { code: "topic_paused", reason: "a person paused the topic" },
        not_served_by: [],
      });
      expect((await put("full/one", definition)).status).toBe(200);
      const listed = await (await server.api("/api/v1/topics")).text();
      expect(listed).not.toContain(SECRET);
      expect(server.lines.join("")).not.toContain(SECRET);
    });

    it("has a fallback and a compensation, checked like the sink, their secrets never shown", async () => {
      const sink = { kind: "http", url: "http://127.0.0.1:8123/" };
      const fallback = { kind: "webhook", url: "http://127.0.0.1:8123/other", secrets: [SECRET], headers: { "x-api-key": "k1" } };
      const compensation = { kind: "http", url: "http://127.0.0.1:8123/undo", timeout_ms: 500 };
      const text = await (await put("carried/one", { sink, fallback, compensation })).text();
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain("k1");
      const shown = JSON.parse(text);
      expect(shown.fallback).toMatchObject({ kind: "webhook", secrets_set: 1, headers: { "x-api-key": "[redacted]" } });
      expect(shown.compensation).toMatchObject({ url: compensation.url, timeout_ms: 500, secrets_set: 0 });
      const refused = await put("carried/one", {
        sink,
        fallback: { kind: "http", url: "http://169.254.169.254/latest" },
        compensation: { kind: "webhook", url: "http://127.0.0.1:8123/", timeout_ms: 99_000 },
      });
      expect(await codes(refused)).toEqual({
        status: 400,
        code: "invalid_topic",
        fields: ["fallback", "compensation.timeout_ms"],
      });
      const kindless = await codes(await put("carried/one", { sink, fallback: {}, compensation: { kind: "function" } }));
      expect(kindless.fields).toEqual(["fallback.kind", "compensation.kind"]);
    });

    it("takes back what a GET showed, and replaces the whole", async () => {
      await put("round/trip", {
        sink: { kind: "http", url: "http://127.0.0.1:8123/" },
        concurrency: 7,
        retry: { policy: "settlement" },
      });
      const shown = (await (await server.api("/api/v1/topics/round/trip")).json()) as Record<string, unknown>;
      expect((await put("round/trip", shown)).status).toBe(200);
      const replaced = await (await put("round/trip", { sink: { kind: "notify" } })).json();
      expect(replaced).toMatchObject({
        concurrency: null,
        sink: { kind: "notify", url: null },
        retry: { policy: "exponential" },
      });
    });

    it("sets and leaves the pause", async () => {
      const definition = { sink: { kind: "notify" } };
      expect(await (await put("pau/se", { ...definition, paused: true })).json()).toMatchObject({ paused: true });
      expect(await (await put("pau/se", { ...definition, concurrency: 3 })).json()).toMatchObject({
        paused: true,
        concurrency: 3,
      });
      expect(await (await put("pau/se", { ...definition, paused: false })).json()).toMatchObject({ paused: false });
      expect(await (await server.api("/api/v1/topics/pau/se/pause", { method: "POST" })).json()).toMatchObject({ paused: true });
      expect(await (await server.send("POST", "/api/v1/topics/pau/se/resume", {})).json()).toMatchObject({ paused: false });
      expect((await server.api("/api/v1/topics/no/such/pause", { method: "POST" })).status).toBe(404);
    });
  });

  describe("refusing", () => {
    const http = { kind: "http", url: "http://127.0.0.1:8123/" };

    it.each<[string, unknown, string[]]>([
      ["no sink", {}, ["sink"]],
      ["not an object", [], ["."]],
      ["a function", { sink: { kind: "function" } }, ["sink.kind"]],
      ["no kind", { sink: { url: "http://127.0.0.1/" } }, ["sink.kind"]],
      ["no url", { sink: { kind: "http" } }, ["sink"]],
      ["a timeout that outlives its lease", { sink: { ...http, timeout_ms: 30_000 }, lease_ms: 30_000 }, ["sink.timeout_ms"]],
      ["a lease of zero", { sink: http, lease_ms: 0 }, ["lease_ms"]],
      [
        "negative numbers",
        { sink: { ...http, timeout_ms: -1 }, concurrency: -1, retry: { attempts_max: -1 } },
        ["sink.timeout_ms", "retry.attempts_max", "concurrency"],
      ],
      [
        "zeros",
        { sink: http, concurrency: 0, tenant_concurrency: 0, retry: { attempts_max: 0, base_ms: 0 } },
        ["retry.base_ms", "retry.attempts_max", "concurrency", "tenant_concurrency"],
      ],
      [
        "limits over all workers that are none",
        { sink: http, concurrency_total: 0, rate_per_second: 0, tenant_rate_per_second: "1" },
        ["rate_per_second", "tenant_rate_per_second", "concurrency_total"],
      ],
      ["an unknown policy", { sink: http, retry: { policy: "never" } }, ["retry.policy"]],
      ["a table for exponential", { sink: http, retry: { policy: "exponential", table_ms: [1] } }, ["retry.table_ms"]],
      ["an empty table", { sink: http, retry: { policy: "table", table_ms: [] } }, ["retry.table_ms"]],
      ["jitter of another kind", { sink: http, retry: { jitter: "full" } }, ["retry.jitter"]],
      ["base above max", { sink: http, retry: { base_ms: 10, max_ms: 5 } }, ["retry.base_ms"]],
      ["an unknown ordering", { sink: http, ordering: "fifo" }, ["ordering"]],
      ["misspelt fields", { sink: { ...http, timeout: 1 }, retries: {}, lease: 5 }, ["sink.timeout", "retries", "lease"]],
      ["__proto__", JSON.parse('{"sink":{"kind":"notify"},"__proto__":{"x":1}}'), ["__proto__"]],
      ["a webhook without a secret", { sink: { kind: "webhook", url: http.url } }, ["sink"]],
      [
        "the mark of a redacted header",
        { sink: { ...http, headers: { authorization: "[redacted]" } } },
        ["sink.headers.authorization"],
      ],
      ["a header that belongs to the sink", { sink: { ...http, headers: { "idempotency-key": "x" } } }, ["sink"]],
      ["a header with a newline", { sink: { ...http, headers: { "x-a": "1\r\nx-b: 2" } } }, ["sink"]],
      ["a private address", { sink: { kind: "http", url: "http://10.0.0.1/" } }, ["sink"]],
      ["a metadata address", { sink: { kind: "http", url: "http://169.254.169.254/latest" } }, ["sink"]],
      ["a file", { sink: { kind: "http", url: "file:///etc/passwd" } }, ["sink"]],
      ["trust that it may not give itself", { sink: { ...http, trusted: true } }, ["sink.trusted"]],
      [
        "an odd status map",
        { sink: { ...http, status_map: { "99": "retry", "409": "maybe" } } },
        ["sink.status_map.99", "sink.status_map.409"],
      ],
    ])("%s", async (_what, body, fields) => {
      const answer = await codes(await put("bad/one", body));
      expect(answer).toEqual({ status: 400, code: "invalid_topic", fields: expect.arrayContaining(fields) });
      expect(answer.fields).toHaveLength(fields.length);
      expect((await server.api("/api/v1/topics/bad/one")).status).toBe(404);
      expect(({} as Record<string, unknown>).x).toBeUndefined();
    });

    it("names that are none (attack 21)", async () => {
      for (const name of ["UPPER/case", "a/b%20c", "a/%27%3Bdrop", `a/${"b".repeat(101)}`, "a/b%00", "-/x", "a/..%2fb"]) {
        const response = await put(name, PAUSED);
        expect([400, 404]).toContain(response.status);
      }
      expect(
        ((await (await server.api("/api/v1/topics")).json()) as { data: { name: string }[] }).data.map(({ name }) => name),
      ).not.toContain("a/b");
    });

    it("text that is not JSON", async () => {
      expect(await codes(await put("bad/one", "{"))).toMatchObject({ status: 400, code: "invalid_topic" });
    });
  });

  describe("deleting", () => {
    it("is 409 while a message is unsettled, 204 after, 404 then", async () => {
      await put("del/one", PAUSED);
      const posted = await server.send("POST", "/api/v1/messages", { topic: "del/one", payload: 1 });
      const { id } = (await posted.json()) as { id: string };
      const held = await server.api("/api/v1/topics/del/one", { method: "DELETE" });
      expect(await codes(held)).toMatchObject({ status: 409, code: "topic_in_use" });
      await server.send("POST", `/api/v1/messages/${id}/discard`, { reason: "not needed" });
      expect((await server.api("/api/v1/topics/del/one", { method: "DELETE" })).status).toBe(204);
      expect((await server.api("/api/v1/topics/del/one", { method: "DELETE" })).status).toBe(404);
    });

    it("is 409 for what the file declared, as is replacing it", async () => {
      const definition = (await server.store.topics.get("full/one"))!;
      await server.store.topics.put({ ...definition, name: "from/file" }, "file");
      expect(await codes(await put("from/file", PAUSED))).toMatchObject({ status: 409, code: "topic_read_only" });
      expect(await codes(await server.api("/api/v1/topics/from/file", { method: "DELETE" }))).toMatchObject({
        status: 409,
        code: "topic_read_only",
      });
    });
  });
});
