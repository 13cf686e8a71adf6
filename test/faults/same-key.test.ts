/**
 * Fault 35: fifty HTTP enqueues with one key at the same moment, through two servers. They are one message with one id, every
 * caller gets the same answer, another body under the key is refused, and so it stays while the message is in flight and after.
 */
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { startCli, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

it("fault 35: 50 parallel enqueues of one key over HTTP are one message; another body is 422", async () => {
  await using receiver = await startReceiver("hang");
  await using fault = await scene({ topics: [topic("same/key", { sink: { kind: "http", url: receiver.url } })] });
  const env = { DATABASE_URL: fault.url, MAKEGOOD_SCHEMA: fault.schema, MAKEGOOD_PORT: "0", MAKEGOOD_POLL_MS: "200" };
  const servers = await Promise.all([startCli(["serve"], env), startCli(["serve"], env)]);
  const bases = await Promise.all(
    servers.map(async (one) => String((await one.fact(({ message }) => message === "listening")).url)),
  );
  const post = async (n: number, payload: unknown, header = false) => {
    const key = header ? {} : { key: "one" };
    const response = await fetch(`${bases[n % 2]}/api/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(header ? { "idempotency-key": "one" } : {}) },
      body: JSON.stringify({ topic: "same/key", payload, ...key }),
    });
    return { status: response.status, body: (await response.json()) as { id?: string; inserted?: boolean; code?: string } };
  };
  const payload = { amount: 5 };
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => post(n, n % 10 === 9 ? { amount: 6 } : payload, n % 5 === 0)),
  );
  const accepted = answers.filter(({ status }) => status !== 422);
  const winners = accepted.filter(({ status }) => status === 201);
  expect(winners).toHaveLength(1);
  expect(new Set(accepted.map(({ body }) => body.id)).size).toBe(1);
  expect(accepted.filter(({ status, body }) => status === 200 && body.inserted === false)).toHaveLength(accepted.length - 1);
  // Whichever body was first, those with the other one were refused.
  expect([5, 45]).toContain(answers.length - accepted.length);
  for (const { status, body } of answers.filter((one) => one.status === 422)) {
    expect({ status, code: body.code }).toEqual({ status: 422, code: "key_conflict" });
  }
  const id = String(winners[0]?.body.id);
  const won = accepted.length === 45 ? payload : { amount: 6 };
  const lost = accepted.length === 45 ? { amount: 6 } : payload;
  fault.history.ok("one", JSON.stringify(won));

  await until("it is in flight", () => receiver.arrivals.length === 1);
  expect(await post(0, won)).toMatchObject({ status: 200, body: { id, inserted: false } });
  expect((await post(1, lost)).status).toBe(422);
  receiver.release();
  await fault.settled();
  expect(await post(1, won)).toMatchObject({ status: 200, body: { id, inserted: false } });
  expect((await post(0, lost)).status).toBe(422);
  for (const server of servers) expect(await server.end("SIGTERM")).toEqual({ code: 0, signal: null });
  expect(receiver.arrivals).toHaveLength(1);
  expect(await fault.check({ receiver, attemptsMax: 1 })).toEqual([]);
});
