/**
 * Dead letters over HTTP: how a message gets there, what its timeline says, and what a person may then do to it.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { STORES, startTestServer, type TestServer } from "./support.ts";

let server: TestServer;
let receiver: Server;
let status = 500;
let requests: { headers: Record<string, unknown>; url: string | undefined }[] = [];

describe.each(STORES)("on the $name store", ({ make }) => {
  let drop: () => Promise<void>;

  beforeAll(async () => {
    receiver = createServer((request, response) => {
      requests.push({ headers: request.headers, url: request.url });
      request.resume();
      request.on("end", () => response.writeHead(status).end("no"));
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const made = await make();
    drop = made.drop;
    server = await startTestServer(
      { MAKEGOOD_POLL_MS: "20", MAKEGOOD_TOKENS: "alice:alice-secret-0123456789" },
      { store: made.store },
    );
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/in`;
    await send("PUT", "/api/v1/topics/dead/end", {
      sink: { kind: "http", url },
      retry: { attempts_max: 2, base_ms: 1, max_ms: 1 },
    });
  });
  afterAll(async () => {
    await server.close({ drainMs: 100 });
    await drop();
    receiver.close();
    receiver.closeAllConnections();
  });

  const authorization = "Bearer alice-secret-0123456789";
  const send = (method: string, path: string, body: unknown) => server.send(method, path, body, { authorization });
  const show = async (id: string) =>
    (await (await server.api(`/api/v1/messages/${id}`, { headers: { authorization } })).json()) as Record<string, unknown>;
  const until = (id: string, wanted: string) =>
    vi.waitFor(async () => expect((await show(id)).status).toBe(wanted), { timeout: 15_000, interval: 20 });

  async function deadLetter(): Promise<string> {
    status = 400;
    const { id } = (await (await send("POST", "/api/v1/messages", { topic: "dead/end", payload: { n: 1 } })).json()) as {
      id: string;
    };
    await until(id, "dead");
    return id;
  }

  describe("a message that waits", () => {
    const later = async (): Promise<string> => {
      const answer = await send("POST", "/api/v1/messages", { topic: "dead/end", payload: 1, delay_ms: 3_600_000 });
      return ((await answer.json()) as { id: string }).id;
    };

    it("is cancelled: discarded with who and why, and not cancelled twice", async () => {
      const id = await later();
      const answer = await send("POST", `/api/v1/messages/${id}/cancel`, { reason: "ordered twice" });
      expect([answer.status, await answer.json()]).toMatchObject([200, { status: "dead", resolution: "discarded" }]);
      expect((await show(id)).provenance).toMatchObject([{ actor: "alice", action: "cancel", reason: "ordered twice" }]);
      expect((await send("POST", `/api/v1/messages/${id}/cancel`, { reason: "again" })).status).toBe(409);
    });

    it("is rescheduled, and refused without a delay", async () => {
      const id = await later();
      expect((await send("POST", `/api/v1/messages/${id}/reschedule`, { reason: "now" })).status).toBe(400);
      status = 200;
      const answer = await send("POST", `/api/v1/messages/${id}/reschedule`, { reason: "now", delay_ms: 0 });
      expect(answer.status).toBe(200);
      await until(id, "delivered");
    });
  });

  describe("a message that cannot be delivered", () => {
    it("is retried within its budget, then dead, with a line for each attempt", async () => {
      status = 500;
      requests = [];
      const { id } = (await (await send("POST", "/api/v1/messages", { topic: "dead/end", payload: 1, key: "k" })).json()) as {
        id: string;
      };
      await until(id, "dead");
      const message = await show(id);
      expect(message).toMatchObject({
        attempts: 2,
        resolution: "open",
        last_code: expect.any(String),
        last_error: expect.any(String),
      });
      expect(message.timeline).toMatchObject([
        { attempt: 1, outcome: "retry", counted: true, next_attempt_at: expect.any(String) },
        { attempt: 2, outcome: "retry", counted: true, next_attempt_at: null },
      ]);
      expect(requests).toHaveLength(2);
      expect(
        requests.map(({ headers }) => [
          headers["idempotency-key"],
          headers["makegood-message-id"],
          headers["makegood-topic"],
          headers["makegood-attempt"],
          headers["content-type"],
        ]),
      ).toEqual([
        ["k", id, "dead/end", "1", "application/json"],
        ["k", id, "dead/end", "2", "application/json"],
      ]);
    });
  });

  describe("replay", () => {
    it("delivers it again under a new generation, in the name of who asked", async () => {
      const id = await deadLetter();
      status = 200;
      const answer = await send("POST", `/api/v1/messages/${id}/replay`, { reason: "the receiver is mended" });
      expect(answer.status).toBe(200);
      // The worker beside this server may have it, or be done with it, before the answer is read.
      const replayed = {
        id,
        status: expect.stringMatching(/^(pending|processing|delivered)$/),
        generation: 1,
        payload: { n: 1 },
      };
      expect(await answer.json()).toMatchObject(replayed);
      await until(id, "delivered");
      expect((await show(id)).provenance).toMatchObject([{ actor: "alice", action: "replay", reason: "the receiver is mended" }]);
      const again = await send("POST", `/api/v1/messages/${id}/replay`, { reason: "once more" });
      expect([again.status, ((await again.json()) as { code: string }).code]).toEqual([409, "wrong_state"]);
    });
  });

  describe("resolve and discard", () => {
    it("close a dead letter once", async () => {
      for (const [action, resolution] of [
        ["resolve", "resolved"],
        ["discard", "discarded"],
      ] as const) {
        const id = await deadLetter();
        const answer = await send("POST", `/api/v1/messages/${id}/${action}`, { reason: "done by hand" });
        expect(await answer.json()).toMatchObject({ status: "dead", resolution });
        expect((await send("POST", `/api/v1/messages/${id}/${action}`, { reason: "again" })).status).toBe(409);
      }
    });

    it("refuse a pending message, except for discard", async () => {
      await send("PUT", "/api/v1/topics/wait/ing", { sink: { kind: "notify" }, paused: true });
      const { id } = (await (await send("POST", "/api/v1/messages", { topic: "wait/ing", payload: 1 })).json()) as { id: string };
      expect((await send("POST", `/api/v1/messages/${id}/replay`, { reason: "x" })).status).toBe(409);
      expect((await send("POST", `/api/v1/messages/${id}/resolve`, { reason: "x" })).status).toBe(409);
      expect((await send("POST", `/api/v1/messages/${id}/discard`, { reason: "x" })).status).toBe(200);
    });

    it("refuse another revision than the one that was seen", async () => {
      const id = await deadLetter();
      const answer = await send("POST", `/api/v1/messages/${id}/resolve`, { reason: "x", revision: 99 });
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([409, "revision_conflict"]);
      const { revision } = (await show(id)) as { revision: number };
      expect((await send("POST", `/api/v1/messages/${id}/resolve`, { reason: "x", revision })).status).toBe(200);
    });
  });

  describe("bad requests", () => {
    it.each<[string, unknown]>([
      ["no reason", {}],
      ["a blank reason", { reason: "  " }],
      ["a reason of another kind", { reason: 7 }],
      ["a reason of 2,001 bytes", { reason: "x".repeat(2_001) }],
      ["a reason with NUL", { reason: "a\u0000b" }],
      ["an unknown field", { reason: "x", always: true }],
      ["a force of another kind", { reason: "x", force: 1 }],
      ["no object", []],
      ["no JSON", "{"],
    ])("%s is 400", async (_what, body) => {
      const answer = await send("POST", "/api/v1/messages/018f0000-0000-7000-8000-000000000000/replay", body);
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([400, "invalid_message"]);
    });

    it("an unknown or malformed id is 404", async () => {
      for (const id of ["018f0000-0000-7000-8000-000000000000", "nope"]) {
        expect((await send("POST", `/api/v1/messages/${id}/replay`, { reason: "x" })).status).toBe(404);
      }
    });
  });
});
