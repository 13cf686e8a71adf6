/**
 * Our process killed with -9 at each step of deliver() and of a drain, and at random moments by a seed; PostgreSQL killed while deliver() is
 * called. Whatever a call returned as queued or delivered has its one effect in the end, nothing contradicts, nothing needs a hand.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it, vi } from "vitest";
import { createMakegood, type DeliverResult, topic } from "../../src/index.ts";
import { createJournal } from "../../src/store/journal/journal.ts";
import { startEmbedded } from "../../src/store/postgres/embedded.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { freshDirectory } from "../journal/support.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { type Process, startScript, until, workspace } from "../support/processes.ts";
import { type Answer, type Receiver, startReceiver } from "../support/receiver.ts";

vi.setConfig({ testTimeout: 90_000 });

const TOPIC = "test/kills";
const CHILD = new URL("./deliver-child.mjs", import.meta.url).pathname;
const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

interface Scene {
  readonly schema: string;
  readonly directory: string;
  readonly receiver: Receiver;
  /** Keys that were answered with success: an arrival alone proves nothing, the direct try may have been answered 503. */
  readonly taken: Set<string>;
  answers(answer: () => Answer): void;
}

function answering(receiver: Receiver): Pick<Scene, "taken" | "answers"> {
  const taken = new Set<string>();
  return {
    taken,
    answers(answer) {
      receiver.default(({ key }) => {
        const given = answer();
        if (typeof given === "object" && "status" in given && given.status < 300) taken.add(key);
        return given;
      });
    },
  };
}

async function start(scene: Scene, options: Record<string, unknown>): Promise<Process> {
  const { schema, directory, receiver } = scene;
  const child = await startScript(CHILD, {
    url: databaseUrl(),
    schema,
    directory,
    receiver: receiver.url,
    topic: TOPIC,
    ...options,
  });
  await child.fact(({ type }) => type === "ready");
  return child;
}

const resultsOf = (child: Process): DeliverResult[] =>
  child.facts.filter(({ type }) => type === "result").map((fact) => fact as unknown as DeliverResult);

/** A process that finds what is left, as the next start of the service would; returns when nothing is owed any more. */
async function recover({ schema, directory, receiver }: Scene) {
  const store = createPostgresStore({ url: databaseUrl(), schema });
  const journal = createJournal({ directory, goneMs: 500 });
  const sink = { kind: "http" as const, url: receiver.url };
  const retry = { attemptsMax: 50, baseMs: 20, maxMs: 200 };
  const mg = await createMakegood({
    store,
    journal,
    topics: [topic(TOPIC, { sink, timeoutMs: 2_000, leaseMs: 2_500, retry })],
    pollMs: 50,
  });
  mg.work();
  let quietLooks = 0;
  await until("nothing is owed", async () => {
    await journal.takeOver();
    await mg.ladder.drain();
    const counts = await store.counts();
    const open = counts.filter(({ status }) => status === "pending" || status === "processing");
    quietLooks = open.length === 0 && mg.ladder.status().waiting.journal === 0 ? quietLooks + 1 : 0;
    // Long enough for a dead process's presence to run out.
    await sleep(100);
    return quietLooks > 8;
  });
  const dead = (await store.counts()).filter(({ status }) => status === "dead");
  const { quarantined } = mg.ladder.status();
  const all = (await store.list({ limit: 1_000 })).data;
  await mg.close();
  return { dead, quarantined, all };
}

async function judge(scene: Scene, results: readonly DeliverResult[]): Promise<void> {
  const { dead, quarantined, all } = await recover(scene);
  expect(dead).toEqual([]);
  expect(quarantined).toBe(0);
  // Accepted is kept: the receiver took each key that was returned, and the store has each key once.
  expect(results.filter(({ kind, key }) => kind === "refused" || !scene.taken.has(key))).toEqual([]);
  expect(new Set(all.map(({ key }) => key)).size).toBe(all.length);
  // The same bytes in every try of a key (I8).
  const bodies = new Map<string, string>();
  for (const { key, sha256 } of scene.receiver.arrivals) {
    expect(bodies.get(key) ?? sha256).toBe(sha256);
    bodies.set(key, sha256);
  }
}

async function withScene(run: (scene: Scene) => Promise<void>): Promise<void> {
  const receiver = await startReceiver();
  const scene = { schema: freshSchema(), directory: await freshDirectory(), receiver, ...answering(receiver) };
  const store = createPostgresStore({ url: databaseUrl(), schema: scene.schema });
  await store.open();
  await store.close();
  try {
    await run(scene);
  } finally {
    await receiver[Symbol.asyncDispose]();
    await dropSchema(scene.schema);
  }
}

describe("killed with -9 at a step", () => {
  const direct = { awayChance: 0, storeFirst: false };
  const first = { awayChance: 0, storeFirst: true };
  const down = { awayChance: 1, storeFirst: false };
  it.concurrent.each([
    ["before the try", direct, 200],
    ["after the try", direct, 200],
    ["before enqueue", direct, 503],
    ["after enqueue", direct, 503],
    ["before append", down, 503],
    ["in append", down, 503],
    ["after append", down, 503],
    ["before claim", first, 200],
    ["after claim", first, 200],
    ["before settle", first, 200],
    ["after settle", first, 200],
    ["drain: before done", down, 503],
    ["drain: after done", down, 503],
  ])("%s", async (stopAt, how, status) => {
    await withScene(async (scene) => {
      scene.answers(() => ({ status }));
      const child = await start(scene, { ...how, stopAt, seed: 1, count: 6, prefix: "s" });
      await child.fact(({ type }) => type === "stopped");
      await child.end("SIGKILL");
      scene.answers(() => ({ status: 200 }));
      await judge(scene, resultsOf(child));
    });
  });
});

describe("the judge", () => {
  it("can fail: a journal that only says that it kept an entry is found out", async () => {
    await withScene(async (scene) => {
      scene.answers(() => ({ status: 503 }));
      const child = await start(scene, {
        awayChance: 1,
        storeFirst: false,
        lies: true,
        stopAt: "after append",
        seed: 1,
        count: 6,
        prefix: "s",
      });
      await child.fact(({ type }) => type === "stopped");
      await child.end("SIGKILL");
      scene.answers(() => ({ status: 200 }));
      expect(resultsOf(child).map(({ kind, stored }) => `${kind} ${stored}`)).toEqual(["queued journal", "queued journal"]);
      await expect(judge(scene, resultsOf(child))).rejects.toThrow();
    });
  });
});

describe("killed with -9 at random moments", () => {
  it("by a seed, many times, while deliver() and drains run: nothing that was returned is lost", async () => {
    await withScene(async (scene) => {
      const seed = Number(process.env.FAULT_SEED ?? 20_261_116);
      let state = seed;
      const random = (): number => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return state / 2 ** 32;
      };
      const statuses = [200, 503, 200, 500];
      let n = 0;
      scene.answers(() => (n++ % 7 === 0 ? "reset" : { status: statuses[n % 4] as number }));
      const results: DeliverResult[] = [];
      for (let round = 0; round < 6; round++) {
        const child = await start(scene, { awayChance: 0.4, seed: seed + round, count: 100_000, prefix: `r${round}` });
        const calls = 5 + Math.floor(random() * 20);
        await until(`${calls} calls returned`, () => resultsOf(child).length >= calls);
        await sleep(random() * 50);
        await child.end("SIGKILL");
        results.push(...resultsOf(child));
      }
      process.stdout.write(`seed ${seed}: ${results.length} calls returned before six kills\n`);
      expect(results.length).toBeGreaterThan(20);
      expect(results.filter(({ stored }) => stored === "journal").length).toBeGreaterThan(0);
      scene.answers(() => ({ status: 200 }));
      await judge(scene, results);
    });
  });
});

describe("PostgreSQL killed", () => {
  it("while deliver() is called: every call returns in time, and all of it is delivered once", async () => {
    const server = await startEmbedded({ dataDir: await workspace() });
    closing.push(() => server.close());
    await using receiver = await startReceiver();
    let n = 0;
    const { taken, answers } = answering(receiver);
    answers(() => ({ status: n++ % 2 === 0 ? 503 : 200 }));
    const store = createPostgresStore({ url: server.url, connectTimeoutMs: 1_000, queryTimeoutMs: 2_000 });
    const sink = { kind: "http" as const, url: receiver.url };
    const retry = { attemptsMax: 100, baseMs: 20, maxMs: 200 };
    const topics = [topic(TOPIC, { sink, timeoutMs: 1_000, leaseMs: 2_000, retry })];
    const lines: string[] = [];
    const mg = await createMakegood({
      store,
      topics,
      journal: { directory: await freshDirectory() },
      errorLog: (line) => lines.push(line),
      pollMs: 50,
    });
    const worker = mg.work();
    const results: DeliverResult[] = [];
    const enough = new AbortController();
    const callers = Array.from({ length: 4 }, async (_, caller) => {
      for (let i = 0; !enough.signal.aborted; i++) {
        results.push(await mg.deliver(TOPIC, { caller, i }, { key: `c${caller}-${i}`, storeFirst: i % 3 === 0 }));
        await sleep(5);
      }
    });
    for (let kill = 0; kill < 2; kill++) {
      const before = results.length;
      await until("calls return", () => results.length > before + 60);
      const killed = server.pid;
      process.kill(killed, "SIGKILL");
      const during = results.length;
      await until("calls return while it is away", () => results.length > during + 8);
      await until("the server is back", () => server.pid !== killed);
    }
    enough.abort();
    await Promise.all(callers);
    await until("nothing is owed", async () => {
      await mg.ladder.drain().catch(() => null);
      const counts = await store.counts().catch(() => null);
      const open = counts?.filter(({ status }) => status !== "dead").length ?? 1;
      return open === 0 && mg.ladder.status().waiting.journal === 0 && mg.ladder.status().waiting.memory === 0;
    });
    const kinds = new Map<string, number>();
    for (const { kind, stored } of results) kinds.set(`${kind}/${stored}`, (kinds.get(`${kind}/${stored}`) ?? 0) + 1);
    process.stdout.write(`${[...kinds].map(([name, count]) => `${name} ${count}`).join(", ")}\n`);
    expect(results.filter(({ kind }) => kind === "refused" || kind === "dead")).toEqual([]);
    expect(results.filter(({ key }) => !taken.has(key))).toEqual([]);
    await worker.stop();
    await mg.close();
  });
});
