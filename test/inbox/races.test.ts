/** Deliveries of one key at the same time, and transactions that end badly: one effect, and never none where one was committed. */
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openScene, type Scene, waits } from "./support.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await openScene({ connections: 22 });
});
afterAll(() => scene[Symbol.asyncDispose]());

const retry = { name: "MakegoodError", code: "retry_transaction", retryable: true };

describe("at the same time", () => {
  it("20 deliveries of one key over 20 connections are one effect", async () => {
    const results = await Promise.all(Array.from({ length: 20 }, () => scene.deliver("rush")));
    expect(results.filter(({ first }) => first)).toHaveLength(1);
    expect(results.every(({ result }) => result?.key === "rush")).toBe(true);
    expect((await scene.effects()).rush).toBe(1);
  });

  it("200 deliveries of 10 keys, of which a third fails in every way there is, are one effect for each key", async () => {
    const ways: ((client: pg.PoolClient) => Promise<unknown>)[] = [
      () => Promise.reject(new Error("the effect failed")),
      (client) => client.query("select 1 / 0"),
      (client) => client.query("rollback"),
      () => Promise.resolve(),
      () => Promise.resolve(),
      () => Promise.resolve(),
    ];
    const one = (n: number) =>
      scene.inTransaction(async (client) => {
        const key = `storm-${n % 10}`;
        const result = await scene.inbox.once(client, key, scene.effect(client, key));
        await (ways[(n * 7) % ways.length] as (typeof ways)[number])(client);
        return result;
      });
    const ended = await Promise.allSettled(Array.from({ length: 200 }, (_, n) => one(n)));
    expect(ended.some(({ status }) => status === "rejected")).toBe(true);
    const effects = Object.entries(await scene.effects()).filter(([note]) => note.startsWith("storm-"));
    expect(effects).toEqual(Array.from({ length: 10 }, (_, n) => [`storm-${n}`, 1]));
  });

  it.each(["commit", "rollback"] as const)("the second waits for the first one's %s", async (end) => {
    const key = `waited for: ${end}`;
    const first = await scene.pool.connect();
    await first.query("begin");
    expect(await scene.inbox.once(first, key, scene.effect(first, key))).toMatchObject({ first: true });
    const second = scene.inTransaction(async (client) => {
      const running = scene.inbox.once(client, key, scene.effect(client, key));
      await waits(scene.pool, client);
      await first.query(end);
      return running;
    });
    expect(await second).toEqual({ first: end === "rollback", result: { key } });
    first.release();
    expect((await scene.effects())[key]).toBe(1);
  });

  it.each([
    ["the server ends the connection", (client: pg.PoolClient) => terminate(client)],
    ["the socket breaks", async (client: pg.PoolClient) => streamOf(client).destroy()],
  ])("when %s in the middle of the effect, the next delivery runs", async (name, kill) => {
    const started = signal();
    const first = await scene.pool.connect();
    const lost = new Promise((resolve) => first.once("error", resolve));
    await first.query("begin");
    const dying = scene.inbox.once(first, name, async () => {
      await scene.effect(first, name)();
      started.give();
      return new Promise<never>(() => undefined);
    });
    void dying.catch(() => undefined);
    await started.given;
    const second = scene.inTransaction(async (client) => {
      const running = scene.inbox.once(client, name, scene.effect(client, name));
      await waits(scene.pool, client);
      await kill(first);
      return running;
    });
    expect(await second).toMatchObject({ first: true });
    await lost;
    first.release(true);
    expect((await scene.effects())[name]).toBe(1);
  });
});

describe("an effect that fails", () => {
  it("passes its error on, and after the rollback the key is free", async () => {
    const failing = () =>
      scene.inTransaction((client) => scene.inbox.once(client, "fails", () => Promise.reject(new Error("no stock"))));
    await expect(failing()).rejects.toThrow("no stock");
    await expect(failing()).rejects.toThrow("no stock");
    expect(await scene.deliver("fails")).toMatchObject({ first: true });
  });

  it("leaves the key free also where the error is caught and the transaction committed", async () => {
    await scene.inTransaction(async (client) => {
      const failing = scene.inbox.once(client, "caught", () => {
        throw new Error("no stock");
      });
      await expect(failing).rejects.toThrow("no stock");
    });
    expect(await scene.deliver("caught")).toMatchObject({ first: true });
  });

  it("passes an error of the database on as it came", async () => {
    const failing = scene.inTransaction((client) => scene.inbox.once(client, "database", () => client.query("select 1 / 0")));
    await expect(failing).rejects.toMatchObject({ code: "22012" });
    expect(await scene.deliver("database")).toMatchObject({ first: true });
  });
});

describe("isolation", () => {
  it.each(["repeatable read", "serializable"])(
    "a conflict under %s undoes the transaction and is told as retry_transaction",
    async (level) => {
      const run = (between: () => Promise<unknown>) =>
        scene.inTransaction(async (client) => {
          await client.query(`set transaction isolation level ${level}`);
          await client.query("select 1");
          await between();
          return scene.inbox.once(client, level, scene.effect(client, level));
        });
      await expect(run(() => scene.deliver(level))).rejects.toMatchObject(retry);
      expect(await run(async () => undefined), "the whole transaction again").toMatchObject({
        first: false,
        result: { key: level },
      });
      expect((await scene.effects())[level]).toBe(1);
    },
  );

  it("two transactions with the same two keys in another order: one goes on, the other is told to run again", async () => {
    const [a, b] = [signal(), signal()];
    const both = (one: string, mine: Signal, theirs: Signal, other: string) =>
      scene.inTransaction(async (client) => {
        await scene.inbox.once(client, one, scene.effect(client, one));
        mine.give();
        await theirs.given;
        await scene.inbox.once(client, other, scene.effect(client, other));
      });
    const ended = await Promise.allSettled([both("cross-a", a, b, "cross-b"), both("cross-b", b, a, "cross-a")]);
    const lost = ended.filter((end) => end.status === "rejected");
    expect(lost).toHaveLength(1);
    expect(lost[0]?.reason).toMatchObject(retry);
    expect(await scene.effects()).toMatchObject({ "cross-a": 1, "cross-b": 1 });
  });

  it("the receiver's lock_timeout bounds the wait for the first delivery", async () => {
    await scene.inTransaction(async (client) => {
      await scene.inbox.once(client, "bounded", scene.effect(client, "bounded"));
      const second = scene.inTransaction(async (other) => {
        await other.query("set local lock_timeout = '50ms'");
        return scene.inbox.once(other, "bounded", scene.effect(other, "bounded"));
      });
      await expect(second).rejects.toMatchObject(retry);
    });
    expect(await scene.deliver("bounded")).toMatchObject({ first: false });
  });
});

interface Signal {
  readonly given: Promise<void>;
  give(): void;
}

function signal(): Signal {
  let give: () => void = () => undefined;
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give: () => give() };
}

async function terminate(client: pg.PoolClient): Promise<void> {
  await scene.pool.query("select pg_terminate_backend($1)", [(client as unknown as { processID: number }).processID]);
}

function streamOf(client: pg.PoolClient): { destroy(): void } {
  return (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream;
}
