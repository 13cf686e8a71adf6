/**
 * Order through real servers (N16, N17): two of them whose clocks differ by 250 ms, one set back in the middle, each message acknowledged
 * before the next is sent; and a thousand keys that wait for an hour in front of one that does not.
 */
import { describe, expect, it } from "vitest";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { startCli, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { startRedis } from "../support/redis-server.ts";

const SKEW = new URL("./skewed-clock.mjs", import.meta.url).href;
const MESSAGES = 40;
const WAITING = 1_100;
const TIMEOUT = 180_000;

async function ordered(env: Record<string, string>): Promise<void> {
  await using receiver = await startReceiver({ status: 200 });
  const start = async (offMs: number) => {
    const server = await startCli(["serve"], {
      MAKEGOOD_PORT: "0",
      MAKEGOOD_POLL_MS: "200",
      NODE_OPTIONS: `--import ${SKEW}`,
      CLOCK_OFF_MS: String(offMs),
      ...env,
    });
    const url = String((await server.fact(({ message }) => message === "listening")).url);
    const send = async (path: string, method: string, body: unknown) => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
      expect(answer.status, await answer.clone().text()).toBeLessThan(300);
    };
    return { server, send };
  };
  const [one, two] = [await start(0), await start(-250)];
  await one.send("/topics/in/order", "PUT", { sink: { kind: "http", url: receiver.url, timeout_ms: 60_000 }, lease_ms: 120_000 });
  for (let from = 0; from < WAITING; from += 550) {
    const messages = Array.from({ length: 550 }, (_, i) => ({
      topic: "in/order",
      ordering_key: `a-${from + i}`,
      payload: 0,
      delay_ms: 3_600_000,
    }));
    await one.send("/messages", "POST", { messages });
  }
  // The first is not answered before all are there: they wait for it, and for nothing else.
  let release = () => {};
  const sent = new Promise<void>((resolve) => {
    release = resolve;
  });
  receiver.default(({ body }) => (body === "1" ? { status: 200, after: sent } : { status: 200 }));
  for (let n = 1; n <= MESSAGES; n++) {
    if (n === MESSAGES / 2) two.server.signal("SIGUSR2");
    await (n % 3 === 0 ? two : one).send("/messages", "POST", { topic: "in/order", ordering_key: "z", payload: n });
  }
  release();
  await until("all are there", () => receiver.arrivals.length >= MESSAGES, 60_000);
  expect(receiver.arrivals.map(({ body }) => Number(body))).toEqual(Array.from({ length: MESSAGES }, (_, i) => i + 1));
  for (const { server } of [one, two]) expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
}

describe("two servers whose clocks differ, one of them set back, behind a thousand keys that wait", () => {
  it(
    "PostgreSQL: in the order in which they were acknowledged",
    async () => {
      const schema = freshSchema();
      await ordered({ DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema });
      await dropSchema(schema);
    },
    TIMEOUT,
  );

  it(
    "Redis: in the order in which they were acknowledged",
    async () => {
      const redis = await startRedis();
      try {
        await ordered({ MAKEGOOD_STORE: "redis", REDIS_URL: redis.url });
      } finally {
        await redis.stop();
      }
    },
    TIMEOUT,
  );
});
