/**
 * The black-box run of deliver(): several processes call it on PostgreSQL, Redis and one journal, while the servers are killed, stopped and
 * restarted at random and the callers, too. What each call returned is counted against a receiver's ledger. FAULT_SEED repeats a run;
 * MAKEGOOD_SOAK=1 (`npm run soak:deliver`) makes it 20,000 calls.
 */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it, vi } from "vitest";
import type { DeliverResult } from "../../src/index.ts";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { type EmbeddedServer, startEmbedded } from "../../src/store/postgres/embedded.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createRedisStore } from "../../src/store/redis/index.ts";
import type { Store } from "../../src/store/store.ts";
import { freshDirectory } from "../journal/support.ts";
import { runSeed, seeded } from "../support/history.ts";
import { type Process, startScript, until, workspace } from "../support/processes.ts";
import { type Arrival, type Receiver, startReceiver } from "../support/receiver.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
const CALLS = Number(process.env.DELIVER_CALLS ?? (soak ? 20_000 : 700));
const CLIENTS = 3;
const AT_ONCE = 4;
/** About so many calls until a caller is killed. */
const LIFE_CALLS = 150;
const GONE_MS = 1_000;
const TOPIC = "black/box";
const CHILD = new URL("./deliver-client.mjs", import.meta.url).pathname;
vi.setConfig({ testTimeout: soak ? 3_600_000 : 180_000 });

/** Every so many keys one is refused for good, whenever it comes: it must end as a dead letter, and no other may. */
const REFUSED_EVERY = 40;
const isRefused = (key: string): boolean => Number(key.split("-").at(-1)) % REFUSED_EVERY === 7;

const closing: (() => PromiseLike<unknown>)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

interface World {
  readonly random: () => number;
  readonly dataDir: string;
  postgres: EmbeddedServer;
  readonly redis: RedisServer;
  readonly receiver: Receiver;
  readonly directory: string;
  /** What happened to whom, for the line at the end. */
  readonly struck: Map<string, number>;
}

async function build(): Promise<World> {
  const random = seeded(runSeed("deliver black box"));
  const dataDir = await workspace();
  const postgres = await startEmbedded({ dataDir });
  const receiver = await startReceiver(({ key }: Arrival) => {
    if (isRefused(key)) return { status: 422 };
    const luck = random();
    if (luck < 0.02) return "reset";
    return { status: luck < 0.08 ? 503 : 200, afterMs: Math.floor(random() * 10) };
  });
  const world = {
    random,
    dataDir,
    postgres,
    redis: await startRedis(),
    receiver,
    directory: await freshDirectory(),
    struck: new Map(),
  };
  closing.push(
    () => world.postgres.close(),
    () => receiver[Symbol.asyncDispose](),
  );
  return world;
}

/** The postmaster and all its children. */
async function family(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return [pid, ...children.split(" ").filter(Boolean).map(Number)];
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It is gone already.
    }
  }
}

/** What can happen to a server; each ends with the server there again. */
function strikes(world: World): [name: string, run: () => Promise<void>][] {
  const { redis, random, dataDir } = world;
  const aWhile = () => sleep(100 + random() * 1_400);
  return [
    [
      "postgres killed",
      async () => {
        const { pid } = world.postgres;
        process.kill(pid, "SIGKILL");
        await until("PostgreSQL is brought back", () => world.postgres.pid !== pid);
      },
    ],
    [
      "postgres away",
      async () => {
        const { url } = world.postgres;
        await world.postgres.close();
        await aWhile();
        world.postgres = await startEmbedded({ dataDir });
        expect(world.postgres.url).toBe(url);
      },
    ],
    [
      "postgres stopped",
      async () => {
        const pids = await family(world.postgres.pid);
        signalAll(pids, "SIGSTOP");
        await aWhile();
        signalAll(pids, "SIGCONT");
      },
    ],
    [
      "redis killed",
      async () => {
        await redis.stop("SIGKILL");
        await aWhile();
        await redis.start();
      },
    ],
    [
      "redis stopped",
      async () => {
        redis.signal("SIGSTOP");
        await aWhile();
        redis.signal("SIGCONT");
      },
    ],
  ];
}

/** Both at once now and then: only then does the journal take anything. */
async function strike(world: World): Promise<void> {
  const { random, struck } = world;
  const all = strikes(world);
  const some = (server: string) => all.filter(([name]) => name.startsWith(server));
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const chosen = random() < 0.5 ? [pick(some("postgres")), pick(some("redis"))] : [pick(all)];
  for (const [name] of chosen) struck.set(name, (struck.get(name) ?? 0) + 1);
  await Promise.all(chosen.map(([, run]) => run()));
}

/** One caller after the other under one name, until the calls are made: each is killed or stopped for a while at some moment. */
async function client(world: World, name: string, calls: number, results: DeliverResult[]): Promise<void> {
  const { random, struck, postgres, redis, receiver, directory } = world;
  const common = { url: postgres.url, redis: redis.url, directory, goneMs: GONE_MS, receiver: receiver.url, topic: TOPIC };
  let made = 0;
  for (let life = 0; made < calls; life++) {
    const lifeName = `${name}.${life}`;
    const seed = Math.floor(random() * 2 ** 31);
    const child = await startScript(CHILD, { ...common, name: lifeName, count: calls - made, atOnce: AT_ONCE, seed });
    const told = () => child.facts.filter(({ type }) => type === "result").length;
    const enough = made + Math.ceil(LIFE_CALLS * (0.5 + random()));
    await until("the caller gets on", () => child.over || isFinished(child) || made + told() >= enough, 120_000);
    expect({ over: child.over, stderr: child.stderr() }).toEqual({ over: false, stderr: "" });
    const stall = random() < 0.4 && !isFinished(child);
    if (stall) {
      child.signal("SIGSTOP");
      // Longer than it takes to be believed gone, half of the time: then others take its journal over while it lives.
      await sleep(random() * 2 * GONE_MS);
      child.signal("SIGCONT");
      await sleep(random() * 500);
    }
    const inOrder = isFinished(child) && random() < 0.5;
    for (const what of [stall ? "caller stalled" : "", inOrder ? "" : "caller killed"]) {
      if (what !== "") struck.set(what, (struck.get(what) ?? 0) + 1);
    }
    await child.end(inOrder ? "SIGTERM" : "SIGKILL");
    made += told();
    results.push(...child.facts.filter(({ type }) => type === "result").map((fact) => fact as unknown as DeliverResult));
  }
}

const isFinished = (child: Process): boolean => child.facts.some(({ type }) => type === "finished");

const isOpen = async (store: Store): Promise<boolean> =>
  (await store.counts()).some(({ topic, status }) => topic === TOPIC && (status === "pending" || status === "processing"));

/** Dead letters go up after what is to be tried; nobody is to be stopped before that. */
const holdsDead = async (store: Store): Promise<boolean> =>
  [...(await byKey(store)).values()].some((messages) => messages.some(({ resolution }) => resolution === "open"));

it(`${CALLS} calls of deliver() while servers and callers are killed: what was promised is in the ledger, once`, async () => {
  const world = await build();
  const { random, receiver, directory, redis, struck } = world;
  const results: DeliverResult[] = [];
  const startedMs = performance.now();
  let calling = true;
  const trouble = (async () => {
    while (calling) {
      await sleep(300 + random() * 1_200);
      if (calling) await strike(world);
    }
  })();
  const calls = Array.from({ length: CLIENTS }, (_, n) => client(world, `c${n}`, Math.ceil(CALLS / CLIENTS), results));
  await Promise.all(calls).finally(() => {
    calling = false;
  });
  await trouble;
  const calledMs = performance.now() - startedMs;

  // One that makes no calls and is left alone: it finds what the others left and ends what is owed.
  const options = { url: world.postgres.url, redis: redis.url, directory, goneMs: GONE_MS, receiver: receiver.url, topic: TOPIC };
  const heir = await startScript(CHILD, { ...options, name: "heir", count: 0, atOnce: 1, seed: 1 });
  const postgres = createPostgresStore({ url: world.postgres.url });
  const secondary = createRedisStore({ redis: redis.url });
  await postgres.open();
  await secondary.open();
  closing.push(
    () => postgres.close(),
    () => secondary.close(),
  );
  await until(
    "nothing is owed anywhere",
    async () =>
      (await readJournal({ directory })).entries.length === 0 &&
      !(await isOpen(secondary)) &&
      !(await isOpen(postgres)) &&
      !(await holdsDead(secondary)),
    60_000,
  );
  await heir.end("SIGTERM");
  await judge(world, results, postgres, secondary);
  const seconds = (ms: number) => `${Math.round(ms / 100) / 10} s`;
  const by = (of: (one: DeliverResult) => string) => counted(results.map(of));
  process.stdout.write(
    `deliver black box: ${results.length} results in ${seconds(calledMs)}, all settled after ${seconds(performance.now() - startedMs)}, ${receiver.arrivals.length} arrivals, ${receiver.effects.size} effects; ` +
      `${by(({ kind, stored }) => `${kind}/${stored}`)}; ${[...struck].map(([name, n]) => `${name} ${n}`).join(", ")}\n`,
  );
  if (!soak) return;
  expect(results.length).toBeGreaterThanOrEqual(CALLS);
  expect(new Set(results.map(({ stored }) => stored))).toEqual(
    new Set([null, "primary", "secondary", "journal", ...memoryToo(results)]),
  );
});

const memoryToo = (results: readonly DeliverResult[]): string[] =>
  results.some(({ stored }) => stored === "memory") ? ["memory"] : [];

function counted(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, n]) => `${name} ${n}`).join(", ");
}

/** All messages of a store, by key. */
async function byKey(store: Store): Promise<Map<string, { id: string; status: string; resolution: string | null }[]>> {
  const found = new Map<string, { id: string; status: string; resolution: string | null }[]>();
  let cursor: string | undefined;
  do {
    const page = await store.list({ topic: TOPIC, limit: 1_000, payload: false, cursor });
    for (const { key, id, status, resolution } of page.data) {
      found.set(key ?? id, [...(found.get(key ?? id) ?? []), { id, status, resolution }]);
    }
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

async function judge({ receiver }: World, results: readonly DeliverResult[], postgres: Store, secondary: Store): Promise<void> {
  const above = await byKey(postgres);
  const below = await byKey(secondary);
  const wrong: string[] = [];
  const say = (what: string, key: string): void => void wrong.push(`${what}: ${key}`);

  for (const { kind, key, survives, code, error } of results) {
    if (kind === "refused") say(`refused (${code}: ${error})`, key);
    if (isRefused(key)) {
      const durable = kind === "dead" && survives !== "nothing";
      if (kind === "delivered" || kind === "duplicate") say("delivered what the receiver refused", key);
      if ((durable || (kind === "queued" && survives !== "nothing")) && above.get(key)?.[0]?.status !== "dead")
        say("no dead letter", key);
      continue;
    }
    if (kind === "dead") say("dead without a refusal", key);
    const promised = kind === "delivered" || kind === "duplicate" || survives !== "nothing";
    if (promised && !receiver.effects.has(key)) say(`promised (${kind}) and not in the ledger`, key);
  }
  const ids = new Map<string, string>();
  const effects = new Map<string, number>();
  for (const { key, body, id, effect } of receiver.arrivals) {
    if (body !== JSON.stringify({ key })) say("another payload under this key", key);
    if ((ids.get(key) ?? id) !== id) say("two messages for one call", key);
    ids.set(key, id);
    if (effect) effects.set(key, (effects.get(key) ?? 0) + 1);
  }
  for (const [key, n] of effects) if (n !== 1 || isRefused(key)) say(`${n} effects`, key);
  for (const [key, messages] of above) {
    const [one, ...more] = messages;
    if (more.length > 0) say("twice in PostgreSQL", key);
    const right = isRefused(key) ? one?.status === "dead" && one.resolution === "open" : one?.status === "delivered";
    if (!right) say(`ended as ${one?.status} (${one?.resolution})`, key);
    if (one?.status === "delivered" && !receiver.effects.has(key)) say("delivered in PostgreSQL and not in the ledger", key);
  }
  for (const [key, messages] of below) {
    for (const { status, resolution } of messages) {
      if (status !== "delivered" && resolution !== "resolved") say(`left in Redis as ${status} (${resolution})`, key);
      const elsewhere = above.has(key) || receiver.effects.has(key);
      if (!elsewhere) say("in Redis and nowhere else", key);
    }
  }
  expect(wrong.slice(0, 20)).toEqual([]);
}
