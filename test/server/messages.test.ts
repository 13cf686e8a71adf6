/**
 * The message routes, word for word as the contract has them, through a real socket, on both stores.
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
    expect((await server.send("PUT", "/api/v1/topics/billing/finalize", PAUSED)).status).toBe(201);
  });
  afterAll(async () => {
    await server.close({ drainMs: 100 });
    await drop();
  });

  const post = (body: unknown, headers?: Record<string, string>) => server.send("POST", "/api/v1/messages", body, headers);
  const problem = async (response: Response) => {
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    const body = (await response.json()) as Record<string, unknown>;
    expect(body.status).toBe(response.status);
    expect(body.type).toBe(`urn:makegood:error:${body.code}`);
    expect(body.instance).toBe(new URL(response.url).pathname);
    return body;
  };

  describe("one message", () => {
    it("is 201, then 200 for the same key and payload, then 422 for another payload", async () => {
      const message = { topic: "billing/finalize", payload: { charge: 1 }, key: "k1" };
      const first = await post(message);
      expect(first.status).toBe(201);
      const { id, inserted } = (await first.json()) as { id: string; inserted: boolean };
      expect(inserted).toBe(true);
      expect(first.headers.get("location")).toBe(`/api/v1/messages/${id}`);
      const again = await post(message);
      expect(again.status).toBe(200);
      expect(await again.json()).toEqual({ id, inserted: false });
      const other = await problem(await post({ ...message, payload: { charge: 2 } }));
      expect(other).toMatchObject({ status: 422, code: "key_conflict", id });
    });

    it("gets the Idempotency-Key header as its key when it has none, bare or quoted", async () => {
      const message = { topic: "billing/finalize", payload: 1 };
      const first = (await (await post(message, { "idempotency-key": "from-header" })).json()) as { id: string };
      const quoted = await post(message, { "idempotency-key": '"from-header"' });
      expect(await quoted.json()).toEqual({ id: first.id, inserted: false });
      const own = await post({ ...message, key: "own" }, { "idempotency-key": "from-header" });
      expect(own.status).toBe(201);
    });

    it("scopes the key by topic and tenant (attack 11)", async () => {
      const message = { topic: "billing/finalize", payload: 1, key: "scoped" };
      const ids = new Set<string>();
      for (const tenant_id of [undefined, "a", "b"]) {
        const response = await post({ ...message, tenant_id, payload: tenant_id ?? "none" });
        expect(response.status).toBe(201);
        ids.add(((await response.json()) as { id: string }).id);
      }
      expect(ids.size).toBe(3);
    });

    it("waits with a concurrent duplicate and answers both: one 201, the rest 200", async () => {
      const message = { topic: "billing/finalize", payload: { n: 1 }, key: "race" };
      const answers = await Promise.all(Array.from({ length: 8 }, () => post(message)));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 200, 200, 201]);
    });

    it.each<[string, unknown, number, string, RegExp]>([
      ["an unknown topic", { topic: "no/such", payload: 1 }, 422, "unknown_topic", /no\/such/],
      ["a malformed topic", { topic: "nonsense", payload: 1 }, 400, "invalid_topic", /namespace\/name/],
      ["no topic", { payload: 1 }, 400, "invalid_message", /topic/],
      ["no payload", { topic: "billing/finalize" }, 400, "invalid_message", /payload/],
      ["a misspelt field", { topic: "billing/finalize", payload: 1, tenant: "x" }, 400, "invalid_message", /"tenant"/],
      ["a key of 10 kB", { topic: "billing/finalize", payload: 1, key: "k".repeat(10_000) }, 400, "key_too_long", /255/],
      ["a key of 256 bytes", { topic: "billing/finalize", payload: 1, key: "é".repeat(128) }, 400, "key_too_long", /255/],
      ["an empty key", { topic: "billing/finalize", payload: 1, key: "" }, 400, "invalid_message", /key/],
      ["a key with NUL", { topic: "billing/finalize", payload: 1, key: "a\u0000b" }, 400, "invalid_message", /key/],
      ["a key with half a pair", '{"topic":"billing/finalize","payload":1,"key":"\\ud800"}', 400, "invalid_message", /key/],
      ["a negative delay", { topic: "billing/finalize", payload: 1, delay_ms: -1 }, 400, "invalid_message", /delay_ms/],
      ["a priority of 101", { topic: "billing/finalize", payload: 1, priority: 101 }, 400, "invalid_message", /priority/],
      ["a numeric tenant", { topic: "billing/finalize", payload: 1, tenant_id: 7 }, 400, "invalid_message", /tenant_id/],
      ["an array", [], 400, "invalid_message", /object/],
      ["nothing", "", 400, "invalid_message", /JSON/],
      ["half of it", '{"topic":"billing/finalize","payload":', 400, "invalid_payload", /JSON/],
      ["a field twice", '{"topic":"a/b","topic":"billing/finalize","payload":1}', 400, "invalid_message", /twice/],
      ["the payload twice", '{"topic":"billing/finalize","payload":1,"payload":2}', 400, "invalid_message", /twice/],
      ["__proto__", '{"topic":"billing/finalize","payload":1,"__proto__":{"x":1}}', 400, "invalid_message", /__proto__/],
    ])("refuses %s", async (_what, body, status, code, detail) => {
      const answer = await problem(await post(body));
      expect(answer).toMatchObject({ status, code });
      expect(answer.detail).toMatch(detail);
      expect(({} as Record<string, unknown>).x).toBeUndefined();
    });

    it("reports everything that is wrong at once", async () => {
      const answer = await problem(await post({ topic: "x", key: "", priority: 1e9 }));
      expect(answer.errors).toHaveLength(4);
    });

    it("refuses a header key of 10 kB", async () => {
      const answer = await problem(
        await post({ topic: "billing/finalize", payload: 1 }, { "idempotency-key": "k".repeat(10_000) }),
      );
      expect(answer).toMatchObject({ status: 400, code: "key_too_long" });
    });
  });

  describe("a batch", () => {
    const one = (key: string, payload: unknown = key) => ({ topic: "billing/finalize", payload, key });

    it("is one transaction: 201 in order, 200 when none was new", async () => {
      const messages = [one("b1"), one("b2"), one("b1")];
      const first = await post({ messages });
      expect(first.status).toBe(201);
      const { data } = (await first.json()) as { data: { id: string; inserted: boolean }[] };
      expect(data.map(({ inserted }) => inserted)).toEqual([true, true, false]);
      expect(data[2]?.id).toBe(data[0]?.id);
      const again = await post({ messages });
      expect(again.status).toBe(200);
      expect(((await again.json()) as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual(data.map(({ id }) => id));
    });

    it("is refused as a whole, every bad element named", async () => {
      const messages = [one("c1"), { topic: "no/such", payload: 1 }, { payload: 1 }, 7, one("b1", "other"), one("k".repeat(300))];
      const answer = await problem(await post({ messages }));
      expect(answer.status).toBe(422);
      expect((answer.errors as { index: number; code: string }[]).map(({ index, code }) => [index, code])).toEqual([
        [1, "unknown_topic"],
        [2, "invalid_message"],
        [3, "invalid_message"],
        [5, "key_too_long"],
      ]);
      const conflict = await problem(await post({ messages: [one("c1"), one("b1", "other")] }));
      expect(conflict).toMatchObject({ status: 422, errors: [{ index: 1, code: "key_conflict" }] });
      const unknown = await problem(await post({ messages: [one("c1"), { topic: "no/such", payload: 1 }] }));
      expect(unknown).toMatchObject({ status: 422, errors: [{ index: 1, code: "unknown_topic" }] });
      const page = (await (await server.api("/api/v1/messages?key=c1")).json()) as { data: unknown[] };
      expect(page.data).toEqual([]);
    });

    it("names the element whose payload is too deep or too large", async () => {
      const deep = `{"messages":[{"topic":"billing/finalize","payload":1},{"topic":"billing/finalize","payload":${"[".repeat(201)}${"]".repeat(201)}}]}`;
      expect(await problem(await post(deep))).toMatchObject({ status: 422, errors: [{ index: 1, code: "invalid_payload" }] });
      const large = { messages: [one("d1"), one("d2", "x".repeat(1_048_576))] };
      expect(await problem(await post(large))).toMatchObject({ status: 422, errors: [{ index: 1, code: "payload_too_large" }] });
    });

    it("takes 1,000 and refuses 1,001, none, and a header key", async () => {
      const many = (count: number) => ({
        messages: Array.from({ length: count }, (_, n) => ({ topic: "billing/finalize", payload: n })),
      });
      const thousand = await post(many(1_000));
      expect(thousand.status).toBe(201);
      expect(((await thousand.json()) as { data: unknown[] }).data).toHaveLength(1_000);
      expect((await post(many(1_001))).status).toBe(400);
      expect((await post({ messages: [] })).status).toBe(400);
      expect((await post({ messages: {} })).status).toBe(400);
      expect((await post({ messages: [one("e1")], topic: "a/b" })).status).toBe(400);
      expect((await post({ messages: [one("e1")] }, { "idempotency-key": "x" })).status).toBe(400);
    });
  });

  describe("reading back", () => {
    it("shows a message with timeline and provenance", async () => {
      const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
      const body = { topic: "billing/finalize", payload: { a: [1] }, key: "r1", tenant_id: "t1", delay_ms: 60_000 };
      const { id } = (await (await post({ ...body, ordering_key: "o1" }, { traceparent })).json()) as { id: string };
      const message = await (await server.api(`/api/v1/messages/${id}`)).json();
      expect(message).toMatchObject({
        id,
        topic: "billing/finalize",
        tenant_id: "t1",
        key: "r1",
        ordering_key: "o1",
        priority: 0,
        status: "pending",
        attempts: 0,
        generation: 0,
        resolution: null,
        held_reason: "topic_paused",
        died_at: null,
        last_error: null,
        last_code: null,
        traceparent,
        timeline: [],
        provenance: [],
        payload: { a: [1] },
      });
      expect(Date.parse((message as { next_attempt_at: string }).next_attempt_at)).toBeGreaterThan(Date.now() + 50_000);
    });

    it("shows the priority of a message without an ordering key", async () => {
      const { id } = (await (await post({ topic: "billing/finalize", payload: 1, priority: -7 })).json()) as { id: string };
      expect(await (await server.api(`/api/v1/messages/${id}`)).json()).toMatchObject({ priority: -7, ordering_key: null });
    });

    it("is 404 for an unknown and for a malformed id", async () => {
      for (const id of ["018f0000-0000-7000-8000-000000000000", "nonsense", "..%2f..%2fetc", "%00", "__proto__"]) {
        expect(await problem(await server.api(`/api/v1/messages/${id}`))).toMatchObject({
          status: 404,
          code: "message_not_found",
        });
      }
    });

    it("lists with filters and cursors, without payloads unless asked", async () => {
      for (let n = 0; n < 5; n++) await post({ topic: "billing/finalize", payload: { n }, tenant_id: "pages" });
      const seen: string[] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const query: string = `tenant_id=pages&limit=2${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
        const page = (await (await server.api(`/api/v1/messages?${query}`)).json()) as {
          data: { id: string }[];
          next_cursor: string | null;
        };
        expect(page.data.every((message) => !("payload" in message) && !("timeline" in message))).toBe(true);
        seen.push(...page.data.map(({ id }) => id));
        cursor = page.next_cursor;
      }
      expect(seen).toHaveLength(5);
      expect(seen.toSorted((a, b) => (a < b ? 1 : -1))).toEqual(seen);
      const full = (await (await server.api("/api/v1/messages?tenant_id=pages&payload=true")).json()) as {
        data: { payload: unknown }[];
      };
      expect(full.data.map(({ payload }) => payload)).toEqual([4, 3, 2, 1, 0].map((n) => ({ n })));
      const none = await (await server.api("/api/v1/messages?status=dead")).json();
      expect(none).toEqual({ data: [], next_cursor: null });
    });

    it.each([
      "status=gone",
      "limit=0",
      "limit=1001",
      "limit=x",
      "tenant=x",
      "status=dead&status=pending",
      "key=%00",
      "payload=1",
    ])("refuses ?%s", async (query) => {
      expect(await problem(await server.api(`/api/v1/messages?${query}`))).toMatchObject({ status: 400, code: "invalid_query" });
    });

    it("refuses a cursor that it did not make", async () => {
      expect((await server.api("/api/v1/messages?cursor=%27%3B+drop+table")).status).toBe(400);
    });
  });
});
