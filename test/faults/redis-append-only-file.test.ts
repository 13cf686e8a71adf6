/**
 * The append-only file as it is now, on real servers: rewritten, not rewritten, not writable, not read to its end. What is found says
 * what it means for durability, and a file that cannot be written survives nothing (DF-9).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "redis";
import { afterEach, describe, expect, it } from "vitest";
import { fromNodeRedis, readDurability, survivesOf } from "../../src/store/redis/index.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/redis-cluster.ts";
import { DURABLE, findRedis, type RedisServer, startRedis } from "../support/redis-server.ts";
import { codeOf, message, redisScene } from "./redis-scene.ts";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function found(url: string) {
  const port = fromNodeRedis(createClient({ url }));
  try {
    const durability = await readDurability(port);
    const findings = durability.nodes.flatMap((node) => node.findings);
    const file = findings.find(({ name }) => name === "append-only-file");
    const sync = findings.find(({ name }) => name === "appendfsync");
    return { verdict: file?.verdict, value: file?.value, file, sync, survives: survivesOf(durability) };
  } finally {
    await port.close();
  }
}

const fill = async (server: RedisServer, keys: number) => {
  const text = `for i = 1, ${keys} do redis.call('SET', 'k' .. i, string.rep(string.char(64 + i), 40) .. redis.sha1hex(i) .. string.rep(redis.sha1hex(-i), 50)) end`;
  await server.ask("EVAL", text, "0");
};

const rewriting = async (server: RedisServer) => {
  await fill(server, 20);
  // Each key takes the child half a second: far longer than the test needs.
  await server.ask("CONFIG", "SET", "rdb-key-save-delay", "500000");
  await server.ask("BGREWRITEAOF");
  await until("it is rewriting", async () => /aof_rewrite_in_progress:1/.test(String(await server.ask("INFO", "persistence"))));
};

describe("a rewrite", () => {
  it("in progress is said, and what is accepted meanwhile is as durable as before", async () => {
    const server = await startRedis(DURABLE);
    expect(await found(server.url)).toMatchObject({ verdict: "verified", value: "written", survives: "process-crash" });
    await rewriting(server);
    const during = await found(server.url);
    expect(during).toMatchObject({ verdict: "verified", value: "rewrite in progress", survives: "process-crash" });
    expect(during.file?.detail).toMatch(/appended as always/);
    const scene = await redisScene(server);
    ends.push(() => scene.close());
    const one = message();
    await scene.store.enqueue([one]);
    await server.stop("SIGKILL");
    await server.start();
    expect(await scene.store.get(one.id)).toMatchObject({ id: one.id });
  }, 30_000);

  it("that failed is advice: nothing is lost", async () => {
    const server = await startRedis(DURABLE);
    await rewriting(server);
    const children = await readFile(`/proc/${server.pid}/task/${server.pid}/children`, "utf8");
    for (const pid of children.trim().split(/\s+/)) process.kill(Number(pid), "SIGKILL");
    await until("Redis has noticed", async () => (await found(server.url)).value === "not rewritten");
    const after = await found(server.url);
    expect([after.verdict, after.file?.required, after.survives]).toEqual(["failed", false, "process-crash"]);
    expect(after.file?.detail).toMatch(/nothing is lost/);
  }, 30_000);

  it("without syncs while it runs: `always` is then not safe from a power cut, and says so", async () => {
    const server = await startRedis([...DURABLE, "--appendfsync", "always", "--no-appendfsync-on-rewrite", "yes"]);
    const { sync, survives } = await found(server.url);
    expect([sync?.verdict, sync?.value, survives]).toEqual(["verified", "always except during a rewrite", "process-crash"]);
    expect(sync?.detail).toMatch(/set it to no/);
    await server.ask("CONFIG", "SET", "no-appendfsync-on-rewrite", "no");
    expect(await found(server.url)).toMatchObject({ survives: "power-loss" });
  });
});

describe("a file that cannot be used", () => {
  it("not writable any more: it survives nothing, and new messages are refused", async () => {
    const { url } = await startOnSmallDisk();
    const scene = await redisScene({ url } as RedisServer);
    ends.push(() => scene.close());
    const payload = JSON.stringify("x".repeat(20_000));
    const codes = new Set<string>();
    await until("a write has failed", async () => {
      codes.add(await codeOf(scene.store.enqueue([message({ payload })])));
      return (await found(url)).value === "not written";
    });
    const { file, survives } = await found(url);
    expect([file?.verdict, file?.required, survives]).toEqual(["failed", true, "nothing"]);
    await scene.store.durability();
    expect(scene.store.traits.survives).toBe("nothing");
    expect(await codeOf(scene.store.enqueue([message()]))).toBe("store_unavailable");
    expect([...codes].filter((code) => code !== "accepted" && code !== "store_unavailable")).toEqual([]);
  }, 30_000);

  it("not read to its end: it survives nothing yet, and the store does not open", async () => {
    const server = await startRedis(DURABLE);
    await fill(server, 60);
    // Into the first part of the file, during whose reading the server answers now and then.
    await server.ask("BGREWRITEAOF");
    const state = async () => String(await server.ask("INFO", "persistence"));
    await until(
      "it is rewritten",
      async () => /aof_rewrites:1/.test(await state()) && /rewrite_in_progress:0/.test(await state()),
    );
    await server.stop("SIGKILL");
    const slowly = ["--key-load-delay", "50000", "--loading-process-events-interval-bytes", "1024"];
    const up = server.start([...DURABLE, ...slowly]);
    try {
      const during = await eventually(async () => {
        const now = await found(server.url);
        return now.value === "loading" ? now : null;
      });
      expect(await codeOf(redisScene(server))).toBe("store_unavailable");
      expect([during.verdict, during.file?.required, during.survives]).toEqual(["failed", true, "nothing"]);
    } finally {
      await up;
    }
    expect(await found(server.url)).toMatchObject({ verdict: "verified", survives: "process-crash" });
  }, 30_000);
});

/** The first answer that is one; a server that is just starting has none. */
async function eventually<T>(ask: () => Promise<T | null>): Promise<T> {
  let answer: T | null = null;
  await until("there is an answer", async () => {
    answer = await ask();
    return answer !== null;
  });
  return answer as T;
}

/** A server whose files may not grow beyond 64 KiB; it is told so by the write, as by a full disk. */
async function startOnSmallDisk(): Promise<{ readonly url: string }> {
  const folder = await mkdtemp(join(tmpdir(), "makegood-redis-"));
  const port = await freePort();
  const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--logfile", join(folder, "log")];
  const limited = 'trap \'\' XFSZ; ulimit -f 64; exec "$0" "$@"';
  const child: ChildProcess = spawn("bash", ["-c", limited, await findRedis(), ...place, ...DURABLE], { stdio: "ignore" });
  ends.push(async () => {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
    child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  });
  const url = `redis://127.0.0.1:${port}`;
  await until("it is up", async () => (await found(url)).verdict !== undefined);
  return { url };
}
