/** N14 and Build 8: a topic that nobody serves says so, and everything pending has a reason one can read. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, topic } from "../../src/index.ts";
import { until } from "../support/processes.ts";
import { PAUSED, STORES, startTestServer, type TestServer } from "./support.ts";

describe.each(STORES)("on the $name store", ({ make }) => {
  let server: TestServer;
  let drop: () => Promise<void>;
  beforeAll(async () => {
    const made = await make();
    drop = made.drop;
    server = await startTestServer({}, { store: made.store });
  });
  afterAll(async () => {
    await server.close({ drainMs: 0 });
    await drop();
  });

  const get = async (path: string) => (await (await server.api(path)).json()) as Record<string, unknown>;
  const post = async (message: object): Promise<Record<string, unknown>> => {
    const { id } = (await (await server.send("POST", "/api/v1/messages", { payload: 1, ...message })).json()) as { id: string };
    return get(`/api/v1/messages/${id}`);
  };
  const pending = (code: string, reason: string) => ({
    status: "pending",
    pending_reason: { code, reason: expect.stringContaining(reason) },
  });

  it("N14: a function topic that no worker has the function of, until one does", async () => {
    const seen: unknown[] = [];
    const fn = topic("served/function", { sink: (payload) => void seen.push(payload) });
    await server.store.topics.put(fn.definition, "code");
    const message = await post({ topic: fn.name });
    expect(message).toMatchObject({ ...pending("no_worker", "function"), held_reason: "no_worker", attempts: 0 });
    expect(await get(`/api/v1/topics/${fn.name}`)).toMatchObject({ held: { code: "no_worker" } });
    await until("health names it", async () => (await get("/health")).status === "degraded");
    expect(await get("/health")).toMatchObject({
      reasons: [expect.stringContaining("served/function: not served (no_worker")],
      topics: { not_served: [{ topic: fn.name, code: "no_worker" }] },
    });
    expect(await (await server.api("/metrics")).text()).toContain(
      'makegood_topic_held{topic="served/function",code="no_worker"} 1',
    );
    expect(await (await server.api("/")).text()).toContain("not served: no_worker");

    await using worker = await createMakegood({ store: server.store, sharedStore: true, topics: [fn], recovery: false });
    worker.work({ topics: [fn.name] });
    await until("it is delivered", () => seen.length === 1);
    expect((await get(`/api/v1/topics/${fn.name}`)).held).toBeNull();
    expect(await get(`/api/v1/messages/${message.id}`)).toMatchObject({ held_reason: null, pending_reason: null });
    await until("health is well again", async () => (await get("/health")).status === "healthy", 15_000);
  });

  it("waiting for its turn in a topic that has a rate over all workers", async () => {
    await server.send("PUT", "/api/v1/topics/served/slow", { sink: { kind: "notify" }, rate_per_second: 0.01 });
    const first = await post({ topic: "served/slow" });
    await until("the first is delivered", async () => (await get(`/api/v1/messages/${first.id}`)).status === "delivered");
    expect(await post({ topic: "served/slow" })).toMatchObject({ ...pending("rate_limited", "0.01"), attempts: 0 });
    expect(await get("/api/v1/topics/served/slow")).toMatchObject({ rate_per_second: 0.01, held: null });
  });

  it("paused, delayed, waiting for its next attempt", async () => {
    await server.send("PUT", "/api/v1/topics/served/paused", PAUSED);
    expect(await post({ topic: "served/paused" })).toMatchObject({
      ...pending("topic_paused", "paused"),
      held_reason: "topic_paused",
    });
    await server.send("PUT", "/api/v1/topics/served/later", { sink: { kind: "notify" } });
    const delayed = await post({ topic: "served/later", delay_ms: 60_000 });
    expect(delayed).toMatchObject({ ...pending("delayed", "due at"), held_reason: null });
    const listed = (await get("/api/v1/messages?topic=served/later")) as { data: unknown[] };
    expect(listed.data).toMatchObject([pending("delayed", "due at")]);
    const retry = { base_ms: 60_000, max_ms: 60_000 };
    await server.send("PUT", "/api/v1/topics/served/refused", { sink: { kind: "http", url: "http://127.0.0.1:2/" }, retry });
    const { id } = await post({ topic: "served/refused" });
    const failed = async () => (await get(`/api/v1/messages/${id}`)) as { attempts: number; status: string };
    await until("it was tried", async () => (await failed()).attempts === 1 && (await failed()).status === "pending");
    expect(await failed()).toMatchObject(pending("retry", "connection_refused"));
  });
});
