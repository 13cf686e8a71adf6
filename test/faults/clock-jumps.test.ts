/**
 * Faults 27 and 28: clocks that jump while everything runs, of a process of ours and of the store's server. Leases and due times follow
 * the store's clock, elapsed time is never read from a wall clock, order is a number that the store gives, and no jump makes two effects of one
 * message or loses one. `npm run soak:clocks` strobes for minutes.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { outOfOrder } from "../support/history.ts";
import { type MovedClock, movedClock } from "../support/moved-clock.ts";
import { ownPostgres } from "../support/own-postgres.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { DURABLE, startRedis } from "../support/redis-server.ts";
import { Accepted, type Served, serve, topicAt } from "./served.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
vi.setConfig({ testTimeout: soak ? 900_000 : 120_000 });

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
const STROBES = soak ? 1_000 : 15;
/** Both stores are asked everything in the soak; in each run Redis answers for what it does in other ways than PostgreSQL. */
const inRun = (store: string) => soak || store === "PostgreSQL";
/** Longer than any pause of a busy machine: what is sent twice was sent twice because of a clock. */
const UNHURRIED = { lease_ms: MINUTE };

const place = (body: string) => {
  const { k, n } = JSON.parse(body) as { k?: string; n: number };
  return k === undefined ? null : { key: k, n };
};

/** Sends plain messages, some with a delay, and those of two ordering keys, by turns through these servers, until told to stop. */
function load(servers: readonly Served[], accepted: Accepted, name: string) {
  const enough = new AbortController();
  const running = (async () => {
    for (let n = 0; !enough.signal.aborted; n++) {
      const by = servers[n % servers.length] as Served;
      await accepted.send(by, "clock/plain", `${name}-${n}`, { n }, n % 5 === 0 ? { delay_ms: 300 } : {});
      const k = `${name}-${n % 2}`;
      await accepted.send(by, "clock/order", `${name}-o${n}`, { k, n }, { ordering_key: k });
      await sleep(5);
    }
  })();
  return async () => {
    enough.abort();
    await running;
  };
}

async function topics(server: Served, receiver: Receiver): Promise<void> {
  for (const name of ["clock/plain", "clock/order", "clock/slow"]) await topicAt(server, name, receiver, UNHURRIED);
}

async function ended(servers: readonly Served[]): Promise<void> {
  for (const { process } of servers) {
    expect(await process.end("SIGTERM")).toMatchObject({ code: 0 });
    expect(process.stderr()).toBe("");
  }
}

interface Stage {
  /** For each process of ours on this store. */
  readonly env: Record<string, string>;
  end(): Promise<unknown>;
}

/** Stores whose clock is right. */
const RIGHT: Record<string, () => Promise<Stage>> = {
  async PostgreSQL() {
    const schema = freshSchema();
    return { env: { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema }, end: () => dropSchema(schema) };
  },
  async Redis() {
    const redis = await startRedis();
    return { env: { MAKEGOOD_STORE: "redis", REDIS_URL: redis.url }, end: () => redis.stop() };
  },
};

/** Stores whose clock is in our hands. */
const MOVED: Record<string, (clock: MovedClock) => Promise<Stage>> = {
  async PostgreSQL(clock) {
    const server = await ownPostgres({ env: clock.env });
    return { env: { DATABASE_URL: server.url }, end: () => server.stop("SIGKILL") };
  },
  async Redis(clock) {
    const redis = await startRedis(DURABLE, clock);
    return { env: { MAKEGOOD_STORE: "redis", REDIS_URL: redis.url }, end: () => redis.stop() };
  },
};

describe.each(Object.keys(RIGHT))("the clock of a process of ours jumps, %s", (store) => {
  it(`fault 27: ${store}: an hour ahead, an hour back and strobing: sent once each, in order, and no delay is longer or shorter`, async () => {
    const clock = await movedClock();
    const stage = await (RIGHT[store] as () => Promise<Stage>)();
    await using receiver = await startReceiver({ status: 200, afterMs: 20 });
    const servers = [await serve({ ...stage.env, ...clock.env }), await serve(stage.env)];
    const [jumps, steady] = servers as [Served, Served];
    await topics(steady, receiver);
    const accepted = new Accepted();
    const stop = load(servers, accepted, "a");

    // A delay is a length of time: of what a process with a wrong clock accepts, none comes an hour early or late.
    const sentAt = new Map<string, number>();
    for (const offMs of [HOUR, -HOUR]) {
      await clock.set(offMs);
      const key = `delayed-${offMs}`;
      sentAt.set(key, performance.now());
      expect(await accepted.send(jumps, "clock/plain", key, { n: 0 }, { delay_ms: 1_000 })).toBe(true);
      await until(`what came ${offMs} ms off is delivered`, () => receiver.of(key).length > 0);
      expect(performance.now() - (sentAt.get(key) as number)).toBeGreaterThanOrEqual(950);
    }
    for (let n = 0; n < STROBES; n++) {
      await clock.set([HOUR, -HOUR, 0][n % 3] as number);
      await sleep(100);
    }
    await stop();
    await accepted.delivered(steady, receiver);
    expect(outOfOrder(receiver.arrivals, place)).toEqual([]);
    // No lease ran out: neither side took a jump for elapsed time.
    expect(receiver.arrivals.length).toBe(accepted.size);
    await ended(servers);
    await stage.end();
  });

  it.runIf(inRun(store))(
    `fault 27: ${store}: stopped past its lease and an hour back when it wakes: its late answer changes nothing`,
    async () => {
      const clock = await movedClock();
      const stage = await (RIGHT[store] as () => Promise<Stage>)();
      await using receiver = await startReceiver("hang");
      const stalled = await serve({ ...stage.env, ...clock.env });
      await topicAt(stalled, "clock/stop", receiver, {
        sink: { kind: "http", url: receiver.url, timeout_ms: 1_300 },
        lease_ms: 1_500,
      });
      const accepted = new Accepted();
      expect(await accepted.send(stalled, "clock/stop", "k", { n: 1 })).toBe(true);
      await until("the request is there", () => receiver.arrivals.length === 1);
      stalled.process.signal("SIGSTOP");
      receiver.default({ status: 200 });
      const other = await serve(stage.env);
      const read = async () => (await other.call("GET", `/messages/${accepted.idOf("k")}`)).body;
      await until("another delivers it", async () => (await read()).status === "delivered");
      const before = await read();
      await clock.set(-HOUR);
      receiver.release(500);
      stalled.process.signal("SIGCONT");
      await stalled.process.fact(({ event }) => event === "claim_lost");
      expect(await read()).toEqual(before);
      await accepted.delivered(other, receiver);
      await ended([stalled, other]);
      await stage.end();
    },
  );
});

describe.each(Object.keys(MOVED))("the clock of the store's server jumps, %s", (store) => {
  it(`fault 28: ${store}: ten minutes back: new work goes on at once, what waits does so for the jump and no longer`, async () => {
    const clock = await movedClock();
    await clock.set(0);
    const stage = await (MOVED[store] as (clock: MovedClock) => Promise<Stage>)(clock);
    await using receiver = await startReceiver({ status: 200 });
    const server = await serve(stage.env);
    await topics(server, receiver);
    const accepted = new Accepted();
    // Due soon by the clock that was; and one in flight whose worker dies, so that only the end of its lease frees it.
    expect(await accepted.send(server, "clock/plain", "waits", { n: 1 }, { delay_ms: 20 * SECOND })).toBe(true);
    receiver.script("leased", ["hang"]);
    expect(await accepted.send(server, "clock/slow", "leased", { n: 1 })).toBe(true);
    await until("it is in flight", () => receiver.of("leased").length === 1);
    await server.process.end("SIGKILL");

    await clock.set(-10 * MINUTE);
    const next = await serve(stage.env);
    const stop = load([next], accepted, "b");
    await until("new work is delivered", () => receiver.effects.size > 100);
    await stop();
    await until("all of it", () => accepted.keys.filter((key) => !receiver.effects.has(key)).length <= 1);
    expect(receiver.of("waits")).toEqual([]);
    expect(receiver.of("leased")).toHaveLength(1);
    // Lease and delay are at their ends now, and not a jump later.
    await clock.set(MINUTE + 5 * SECOND);
    await until("what waited is delivered", () => receiver.effects.has("waits"));
    await until("what was leased is taken over", () => receiver.of("leased").length === 2);
    await accepted.delivered(next, receiver);
    expect(outOfOrder(receiver.arrivals, place)).toEqual([]);
    await ended([next]);
    await stage.end();
  });

  it.runIf(inRun(store))(
    `fault 28: ${store}: an hour ahead under load: every lease ends at once, and each message still has one end`,
    async () => {
      const clock = await movedClock();
      const stage = await (MOVED[store] as (clock: MovedClock) => Promise<Stage>)(clock);
      await using receiver = await startReceiver({ status: 200, afterMs: 100 });
      const servers = [await serve(stage.env), await serve(stage.env)];
      const [one] = servers as [Served, Served];
      await topics(one, receiver);
      const accepted = new Accepted();
      expect(await accepted.send(one, "clock/plain", "half-an-hour", { n: 1 }, { delay_ms: HOUR / 2 })).toBe(true);
      expect(await accepted.send(one, "clock/plain", "two-hours", { n: 1 }, { delay_ms: 2 * HOUR })).toBe(true);
      const stop = load(servers, accepted, "c");
      await until("there is load", () => receiver.effects.size > 50);
      await clock.set(HOUR);
      await until("what was due in half an hour is delivered", () => receiver.effects.has("half-an-hour"));
      const before = receiver.effects.size;
      await until("load goes on", () => receiver.effects.size > before + 50);
      expect(receiver.of("two-hours")).toEqual([]);
      for (let n = 0; soak && n < STROBES / 10; n++) {
        await clock.set([HOUR, HOUR - 10 * MINUTE, HOUR + 10 * MINUTE][n % 3] as number);
        await sleep(200);
      }
      await stop();
      await clock.set(2 * HOUR + MINUTE);
      await accepted.delivered(one, receiver);
      // A delay runs out once, whatever the clock did.
      expect(["half-an-hour", "two-hours"].map((key) => receiver.of(key).length)).toEqual([1, 1]);
      expect(outOfOrder(receiver.arrivals, place)).toEqual([]);
      await ended(servers);
      await stage.end();
    },
  );
});
