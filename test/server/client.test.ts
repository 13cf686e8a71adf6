/**
 * The client of the contract against a real server: typed calls, exact payloads, refusals as errors, and what is tried again.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiError, type Client, createClient } from "../../src/contract/index.ts";
import { startTestServer, type TestServer } from "./support.ts";

const TOKEN = "alice-secret-0123456789";
let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await startTestServer({ MAKEGOOD_TOKENS: `alice:${TOKEN}` });
  client = createClient({ url: `${server.url}/`, token: TOKEN });
  await client.putTopic({ namespace: "shop", name: "orders", sink: { kind: "notify" }, paused: true });
});
afterAll(() => server.close({ drainMs: 100 }));

describe("the client", () => {
  it("enqueues, lists, shows and steers, with the types of the contract", async () => {
    const accepted = await client.enqueue({ topic: "shop/orders", payload: { n: 1 }, key: "one" });
    if (!("id" in accepted)) throw new Error("one message, one answer");
    expect(accepted.inserted).toBe(true);
    const { data } = await client.listMessages({ topic: "shop/orders", status: "pending", limit: 5 });
    expect(data.map(({ id, status }) => [id, status])).toEqual([[accepted.id, "pending"]]);
    const message = await client.getMessage({ id: accepted.id });
    expect([message.payload, message.timeline]).toEqual([{ n: 1 }, []]);
    expect((await client.pauseTopic({ namespace: "shop", name: "orders" })).paused).toBe(true);
    expect((await client.listTopics()).data.some(({ name }) => name === "shop/orders")).toBe(true);
  });

  it("I8: a payload goes out and comes back byte for byte", async () => {
    const payload = '{"n":12345678901234567890, "n":1.0, "t":"\\u0041"}';
    const sent = await client.raw("enqueue", { key: "exact" }, { body: `{"topic":"shop/orders","payload":${payload}}` });
    expect(sent.status).toBe(201);
    const { id } = JSON.parse(sent.text) as { id: string };
    expect((await client.raw("getPayload", { id })).text).toBe(payload);
  });

  it("a refusal is an error with its code and the faults", async () => {
    const refused = client.enqueue({ topic: "nope", payload: 1 });
    await expect(refused).rejects.toThrow(ApiError);
    await expect(refused).rejects.toMatchObject({ status: 400, code: "invalid_topic" });
    const stranger = createClient({ url: server.url });
    await expect(stranger.listTopics()).rejects.toMatchObject({ status: 401, code: "unauthorized" });
    await expect(client.getMessage({ id: "nope" })).rejects.toMatchObject({ code: "message_not_found" });
  });
});

describe("what is tried again", () => {
  it("is what may be done twice: reads, and what has a key; anything else is the caller's to repeat", async () => {
    const asked: string[] = [];
    const busy = createServer((request, response) => {
      asked.push(request.method ?? "");
      if (asked.length % 2 === 1) {
        response.writeHead(503, { "content-type": "application/problem+json", "retry-after": "0" });
        response.end('{"code":"store_unavailable","detail":"away","status":503}');
      } else response.writeHead(201, { "content-type": "application/json" }).end('{"id":"x","inserted":true,"data":[]}');
    });
    await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(busy.address() as AddressInfo).port}`;
    const away = createClient({ url });
    await away.listTopics();
    await away.enqueue({ topic: "a/b", payload: 1, key: "k" });
    expect(asked).toEqual(["GET", "GET", "POST", "POST"]);
    await expect(away.enqueue({ topic: "a/b", payload: 1 })).rejects.toMatchObject({ code: "store_unavailable" });
    expect(asked.length).toBe(5);
    await new Promise((resolve) => busy.close(resolve));
  });
});
