/**
 * Our process killed with -9 at each step of deliver(), of a drain and of an attempt from below. Whatever a call returned as queued or delivered
 * has its one effect in the end, nothing contradicts, nothing needs a hand. Random moments: `black-box.test.ts`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { createMakegood, type DeliverResult, topic } from "../../src/index.ts";
import { createJournal } from "../../src/store/journal/journal.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { freshDirectory } from "../journal/support.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { type Process, startScript, until } from "../support/processes.ts";
import { type Answer, type Arrival, type Receiver, startReceiver } from "../support/receiver.ts";

vi.setConfig({ testTimeout: 90_000 });

const TOPIC = "test/kills";
const CHILD = new URL("./deliver-child.mjs", import.meta.url).pathname;

interface Scene {
  readonly schema: string;
  readonly directory: string;
  readonly receiver: Receiver;
  /** Keys that were answered with success: an arrival alone proves nothing, the direct try may have been answered 503. */
  readonly taken: Set<string>;
  answers(answer: (arrival: Arrival) => Answer): void;
}

function answering(receiver: Receiver): Pick<Scene, "taken" | "answers"> {
  const taken = new Set<string>();
  return {
    taken,
    answers(answer) {
      receiver.default((arrival) => {
        const given = answer(arrival);
        if (typeof given === "object" && "status" in given && given.status < 300) taken.add(arrival.key);
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
  await journal.close();
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
  const direct = { away: false, storeFirst: false };
  const first = { away: false, storeFirst: true };
  const down = { away: true, storeFirst: false };
  const firstBelow = { away: true, storeFirst: true };
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
    ["below: after begin", down, 503],
    ["below: after the try", down, 503, 200],
    ["below: before done", down, 503, 200],
    ["below: after done", down, 503, 200],
    ["below: before the mark", down, 503],
    ["below: before done", firstBelow, 503, 200],
  ])("%s, %o", async (stopAt, how, status, later = status) => {
    await withScene(async (scene) => {
      scene.answers(({ attempt }) => ({ status: attempt === 0 ? status : later }));
      const child = await start(scene, { ...how, stopAt, count: 6, prefix: "s" });
      await child.fact(({ type }) => type === "stopped");
      await child.end("SIGKILL");
      scene.answers(() => ({ status: 200 }));
      expect(resultsOf(child).length).toBeGreaterThan(0);
      await judge(scene, resultsOf(child));
    });
  });
});

describe("the judge", () => {
  it("can fail: a journal that only says that it kept an entry is found out", async () => {
    await withScene(async (scene) => {
      scene.answers(() => ({ status: 503 }));
      const child = await start(scene, {
        away: true,
        storeFirst: false,
        lies: true,
        stopAt: "after append",
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
