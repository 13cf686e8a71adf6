/**
 * Faults 10 to 12: a COMMIT has three outcomes. Its reply is lost, or the request never arrives, for an enqueue of our own, for
 * one in the caller's transaction, and for a settle: one row whatever was lost, nothing that was rolled back is delivered, and
 * nothing is settled or counted twice.
 */
import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import { isMakegoodError, topic } from "../../src/index.ts";
import { createIds } from "../../src/platform/ids.ts";
import { databaseUrl } from "../support/postgres.ts";
import { startReceiver } from "../support/receiver.ts";
import { type Rule, startProxy, targetOf } from "../support/tcp-proxy.ts";
import { newMessage, type SceneOptions, scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

const COMMIT = /Q....commit\0/s;
const ENQUEUE = /insert into "[^"]+"\.message|mg_enqueue_/;
const SETTLE = /insert into "[^"]+"\.attempt/;
const ids = createIds();

async function behindProxy(options: SceneOptions = {}) {
  const proxy = await startProxy(targetOf(databaseUrl()));
  const stage = await scene({
    topics: [topic("commit/it")],
    ...options,
    via: (url) => proxy.via(url),
    storeOptions: { queryTimeoutMs: 2_000 },
  });
  return {
    ...stage,
    proxy,
    rows: async () => Number((await stage.sql("select count(*) as n from message"))[0]?.n),
    async [Symbol.asyncDispose]() {
      await stage[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

const message = (key: string | null) => newMessage("commit/it", key);
const codeOf = (error: unknown) => (isMakegoodError(error) ? error.code : String(error));

const LOST = [
  { fault: 10, act: "lose-reply", there: 1 },
  { fault: 10, act: "swallow-reply", there: 1 },
  { fault: 11, act: "lose-request", there: 0 },
] as const satisfies { fault: number; act: Rule["act"]; there: number }[];

describe.for(LOST)("fault $fault: $act of an enqueue's COMMIT", ({ fault, act, there }) => {
  it.concurrent.for([
    { what: "one keyed message", messages: () => [message("k")], repeats: false, match: ENQUEUE },
    { what: "one without a key", messages: () => [message(null)], repeats: false, match: ENQUEUE },
    { what: "a batch with keys", messages: () => [message("a"), message(null), message("b")], repeats: false, match: ENQUEUE },
    // Where keys repeat, a batch is a transaction of several statements.
    { what: "a batch after a repeat", messages: () => [message("a"), message(null), message("b")], repeats: true, match: COMMIT },
    { what: "a batch without keys", messages: () => [message(null), message(null)], repeats: false, match: ENQUEUE },
  ])(
    `fault ${fault}: $what: the store says that the outcome is unknown, and the same call again is one row each`,
    async (given) => {
      await using stage = await behindProxy();
      const messages = given.messages();
      const first = message("first");
      await stage.mg.store.enqueue([first]);
      if (given.repeats) await stage.mg.store.enqueue([{ ...first, id: ids() }]);
      const rule = stage.proxy.rule({ match: given.match, act });
      const thrown = await stage.mg.store.enqueue(messages).catch((error: unknown) => error);
      expect(rule.count()).toBe(1);
      expect(codeOf(thrown)).toBe("outcome_unknown");
      expect(await stage.rows()).toBe(1 + there * messages.length);
      const again = await stage.mg.store.enqueue(messages);
      expect(again.map(({ id }) => id)).toEqual(messages.map(({ id }) => id));
      expect(again.every(({ kind }) => kind === "accepted")).toBe(true);
      expect(await stage.rows()).toBe(1 + messages.length);
    },
  );

  it.concurrent(`fault ${fault}: mg.enqueue tries again by itself under the same id: one row, and it is told inserted`, async () => {
    await using stage = await behindProxy();
    await stage.mg.enqueue("commit/it", { n: 0 });
    const rule = stage.proxy.rule({ match: ENQUEUE, act });
    const one = await stage.mg.enqueue("commit/it", { n: 1 }, { key: "own" });
    expect({ struck: rule.count(), inserted: one.inserted }).toEqual({ struck: 1, inserted: true });
    const batch = stage.proxy.rule({ match: ENQUEUE, act });
    const many = await stage.mg.enqueueMany("commit/it", [{ payload: 1, key: "m1" }, { payload: 2 }]);
    expect({ struck: batch.count(), inserted: many.map(({ inserted }) => inserted) }).toEqual({
      struck: 1,
      inserted: [true, true],
    });
    expect(await stage.rows()).toBe(4);
  });

  it.concurrent(`fault ${fault}: the caller's own transaction: its retry under the same id is one row`, async () => {
    await using stage = await behindProxy();
    const id = ids();
    const attempt = async (url: string) => {
      const client = new pg.Client({ connectionString: url, query_timeout: 2_000 });
      client.on("error", () => undefined);
      await client.connect();
      try {
        await client.query("begin");
        const result = await stage.mg.enqueue("commit/it", { n: 1 }, { tx: client, key: "tx", id });
        await client.query("commit");
        return result;
      } finally {
        await client.end().catch(() => undefined);
      }
    };
    const rule = stage.proxy.rule({ match: COMMIT, act });
    await expect(attempt(stage.proxy.via(stage.url))).rejects.toThrow();
    expect(rule.count()).toBe(1);
    expect(await stage.rows()).toBe(there);
    expect((await attempt(stage.url)).id).toBe(id);
    expect(await stage.rows()).toBe(1);
  });
});

describe("fault 12: the reply to a settle is lost", () => {
  it.concurrent.for(["lose-reply", "swallow-reply", "lose-request"] as const)(
    "fault 12: %s after a 2xx: sent once, settled once",
    async (act) => {
      await using receiver = await startReceiver();
      const sink = { kind: "http" as const, url: receiver.url };
      await using stage = await behindProxy({ topics: [topic("commit/it", { sink, leaseMs: 20_000 })] });
      const rule = stage.proxy.rule({ match: SETTLE, act });
      stage.mg.work();
      await stage.send("commit/it", 20);
      await stage.settled();
      expect(rule.count()).toBe(1);
      expect(receiver.arrivals).toHaveLength(20);
      expect(await stage.check({ receiver, attemptsMax: 1 })).toEqual([]);
    },
  );

  it.concurrent.for(["lose-reply", "swallow-reply", "lose-request"] as const)(
    "fault 12: %s after a failure: the attempt is counted once",
    async (act) => {
      await using receiver = await startReceiver();
      const sink = { kind: "http" as const, url: receiver.url };
      const retry = { attemptsMax: 2, baseMs: 300, jitter: "none" as const };
      await using stage = await behindProxy({ topics: [topic("commit/it", { sink, leaseMs: 20_000, retry })] });
      receiver.script("k-0", [{ status: 500 }]);
      receiver.script("k-1", [{ status: 500 }, { status: 500 }]);
      const rule = stage.proxy.rule({ match: SETTLE, act });
      stage.mg.work();
      const [lives = "", dies = ""] = await stage.send("commit/it", 2);
      await stage.settled();
      expect(rule.count()).toBe(1);
      expect(await stage.store.get(lives)).toMatchObject({ status: "delivered", attempts: 2 });
      expect(await stage.store.get(dies)).toMatchObject({ status: "dead", attempts: 2 });
      expect(receiver.of(lives).map(({ attempt }) => attempt)).toEqual([1, 2]);
      expect(await stage.check({ receiver, attemptsMax: 2, dead: ["k-1"] })).toEqual([]);
    },
  );
});
