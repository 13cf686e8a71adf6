/**
 * N1: messages that a well receiver refuses for their own sake, beside those that it takes, with two workers at default settings on either
 * store. The good ones are not held up, and a topic half of whose messages fail is worked off. `npm run soak:breaker` is the long form and
 * prints the figures; what an outage does is in outage.test.ts.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "redis";
import { describe, expect, it, vi } from "vitest";
import { type AnyTopic, createMakegood, type Makegood, topic } from "../../src/index.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createRedisStore, fromNodeRedis } from "../../src/store/redis/index.ts";
import type { Store } from "../../src/store/store.ts";
import { databaseUrl, freshSchema } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { type Arrival, type Receiver, startReceiver } from "../support/receiver.ts";
import { startRedis } from "../support/redis-server.ts";
import { freshPrefix } from "../support/redis-store.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
vi.setConfig({ testTimeout: soak ? 180_000 : 60_000 });
/** The figures hold in the long form, alone on the machine; the short form has too few for a median, and only sees that nobody waits for minutes. */
const within = (ms: number): number => (soak ? ms : 15 * ms);

const redis = startRedis();
const STORES: Record<string, () => Promise<() => Store>> = {
  PostgreSQL: async () => {
    const schema = freshSchema();
    return () => createPostgresStore({ url: databaseUrl(), schema });
  },
  Redis: async () => {
    const prefix = freshPrefix();
    const { url } = await redis;
    return () => createRedisStore({ redis: fromNodeRedis(createClient({ url })), prefix });
  },
};

interface Two extends AsyncDisposable {
  readonly receiver: Receiver;
  readonly mg: Makegood;
  readonly store: Store;
  send(count: number, payload: object, prefix: string): Promise<void>;
  /** The ordering key of what has this key, where the topic keeps an order. */
  ordered(key: string): string | undefined;
  work(): void;
  left(): Promise<number>;
}

const isBad = ({ body }: Arrival): boolean => (JSON.parse(body) as { bad?: boolean }).bad === true;

/** Two workers of one store, as two processes would be, and a receiver that refuses what is bad. */
async function two(
  open: () => Promise<() => Store>,
  with_: Parameters<typeof topic>[1] extends infer T ? Partial<T> : never,
): Promise<Two> {
  const receiver = await startReceiver((arrival) => ({ status: isBad(arrival) ? 500 : 200 }));
  const ordered = (key: string) => (with_?.ordering === undefined ? undefined : key);
  const declared: AnyTopic = topic("poison/any", { ...with_, sink: { kind: "http", url: receiver.url } });
  const another = await open();
  const made: Makegood[] = [];
  const stores: Store[] = [];
  for (let n = 0; n < 2; n++) {
    const store = another();
    stores.push(store);
    made.push(await createMakegood({ store, topics: [declared], recovery: false }));
  }
  const [mg, store] = [made[0] as Makegood, stores[0] as Store];
  return {
    receiver,
    mg,
    store,
    async send(count, payload, prefix) {
      for (let from = 0; from < count; from += 1_000) {
        const size = Math.min(1_000, count - from);
        await mg.enqueueMany(
          "poison/any",
          Array.from({ length: size }, (_, n) => ({
            payload,
            key: `${prefix}-${from + n}`,
            orderingKey: ordered(`${prefix}-${from + n}`),
          })),
        );
      }
    },
    ordered,
    work: () => made.forEach((each) => void each.work()),
    async left() {
      const counts = await store.counts();
      return counts.reduce((sum, { status, count }) => sum + (status === "pending" || status === "processing" ? count : 0), 0);
    },
    async [Symbol.asyncDispose]() {
      for (const each of made) await each.close();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

/** Good ones at an even pace; how long each was under way, shortest first. */
async function waits(
  { mg, receiver, ordered }: Two,
  count: number,
  perSecond: number,
  between: () => Promise<void> = async () => {},
): Promise<number[]> {
  const sentMs = new Map<string, number>();
  for (let n = 0; n < count; n++) {
    sentMs.set(`good-${n}`, performance.now());
    await mg.enqueue("poison/any", { n }, { key: `good-${n}`, orderingKey: ordered(`good-${n}`) });
    await between();
    await sleep(1_000 / perSecond);
  }
  await until("the good ones arrived", () => [...sentMs.keys()].every((key) => receiver.of(key).length > 0), 120_000);
  return [...sentMs].map(([key, ms]) => Number(receiver.of(key)[0]?.atMs) - ms).sort((a, b) => a - b);
}

const p = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
const say = (text: string): void => void process.stdout.write(`N1 ${text}\n`);
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;

describe.each(Object.entries(STORES))("%s", (name, open) => {
  it.each([
    [60, "none"],
    [600, "none"],
    [600, "key"],
  ] as const)("N1: %i poison messages first, in order by %s: the good ones do not wait for them", async (poison, ordering) => {
    await using pair = await two(open, ordering === "key" ? { ordering } : {});
    pair.work();
    await pair.send(poison, { bad: true }, "bad");
    const took = await waits(pair, soak ? 200 : 15, 10);
    say(
      `${name}: after ${poison} poison messages (order: ${ordering}) the good ones waited ${seconds(p(took, 0.5))} in the median, ${seconds(p(took, 1))} at most`,
    );
    expect(p(took, 0.5)).toBeLessThan(within(1_000));
    expect(p(took, 1)).toBeLessThan(within(5_000));
  });

  it.each(["none", "key"] as const)(
    "N1: poison before and after the good ones, in order by %s: probes find those between, not seconds later for each at an end",
    async (ordering) => {
      await using pair = await two(open, ordering === "key" ? { ordering } : {});
      // A sixth of them in the long form. In the short form most are good, so that chance cannot make it long.
      const [before, good, after] = soak ? [400, 100, 100] : [200, 1_000, 100];
      await pair.send(before, { bad: true }, "before");
      await pair.send(good, {}, "good");
      await pair.send(after, { bad: true }, "after");
      const arrived = (): Arrival[] => pair.receiver.arrivals.filter((arrival) => !isBad(arrival));
      const startMs = performance.now();
      pair.work();
      await until("a good one arrived", () => arrived().length > 0, 120_000);
      const first = pair.receiver.arrivals.findIndex((arrival) => !isBad(arrival));
      // What was under way when it opened came in one burst.
      const alone = ({ atMs }: Arrival, n: number): boolean => atMs - Number(pair.receiver.arrivals[n - 1]?.atMs ?? atMs) > 500;
      const probes = pair.receiver.arrivals.slice(0, first).filter(alone).length;
      await until("half of them arrived", () => arrived().length >= good / 2, 120_000);
      say(
        `${name}: ${good} good messages between ${before} and ${after} poison ones (order: ${ordering}): the first after ${probes} probes, half of them after ${seconds(performance.now() - startMs)}`,
      );
      // From the ends alone it would take twice as many as stand at the shorter one.
      expect(probes).toBeLessThan(soak ? 60 : 20);
    },
  );

  it("N1: poison of fifty tenants, more of it all the time: the one that is well does not wait for them", async () => {
    await using pair = await two(open, {});
    pair.work();
    let sent = 0;
    const poison = (count: number) =>
      pair.mg.enqueueMany(
        "poison/any",
        Array.from({ length: count }, () => ({ payload: { bad: true }, tenantId: `sick-${sent++ % 50}` })),
      );
    await poison(60);
    const took = await waits(pair, soak ? 200 : 15, 10, async () => void (await poison(1)));
    say(
      `${name}: beside poison of fifty tenants the good ones waited ${seconds(p(took, 0.5))} in the median, ${seconds(p(took, 1))} at most`,
    );
    expect(p(took, 0.5)).toBeLessThan(within(1_000));
    expect(p(took, 1)).toBeLessThan(within(5_000));
  });

  it("N1: a topic of which two in five fail for their own reasons is worked off", async () => {
    await using pair = await two(open, { retry: { attemptsMax: 2, baseMs: 20 } });
    const all = soak ? 2_100 : 500;
    for (let from = 0; from < all; from += 100) {
      const some = Array.from({ length: 100 }, (_, n) => ({
        payload: { bad: ((from + n) * 7_919) % 5 < 2 },
        key: `m-${from + n}`,
      }));
      await pair.mg.enqueueMany("poison/any", some);
    }
    const startMs = performance.now();
    pair.work();
    await until("nothing is left", async () => (await pair.left()) === 0, 120_000);
    say(`${name}: ${all} messages, two in five failing twice: through in ${seconds(performance.now() - startMs)}`);
    expect(performance.now() - startMs).toBeLessThan(soak ? 30_000 : 30_000);
  });
});
