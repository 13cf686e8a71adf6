/**
 * A redis-server of one test file: free port, AOF on, in a directory of its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { fromIoredis, type RedisPort } from "../../src/store/redis/port.ts";
import { freePort } from "../support/free-port.ts";
import { findRedis } from "../support/redis-server.ts";
import { roomyMemory } from "../support/roomy-memory.ts";

export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  connect(): RedisPort;
  /** Freezes and thaws the server: nobody answers, nobody refuses. */
  freeze(): void;
  thaw(): void;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

export async function startRedis(): Promise<RedisServer> {
  const program = await findRedis();
  const directory = await mkdtemp(join(await roomyMemory(), "makegood-settlement-redis-"));
  const port = await freePort();
  const settings = ["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction", "--save", ""];
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--dir", directory, ...settings];
  const clients = new Set<Redis>();
  const ports = new Set<RedisPort>();
  let child: ChildProcess;

  const start = async (): Promise<void> => {
    child = spawn(program, args, { stdio: "ignore" });
    for (let tries = 0; tries < 200; tries++) {
      const probe = new Redis({ host: "127.0.0.1", port, lazyConnect: true, retryStrategy: () => null });
      probe.on("error", () => undefined);
      const up = await probe.connect().then(
        () => probe.ping(),
        () => null,
      );
      probe.disconnect();
      if (up === "PONG") return;
      await sleep(25);
    }
    throw new Error(`redis-server on port ${port} did not start`);
  };
  const kill = async (): Promise<void> => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGCONT");
    child.kill("SIGKILL");
    await ended;
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    connect() {
      const client = new Redis({ host: "127.0.0.1", port, lazyConnect: true });
      client.on("error", () => undefined);
      clients.add(client);
      const made = fromIoredis(client);
      ports.add(made);
      return made;
    },
    freeze: () => void child.kill("SIGSTOP"),
    thaw: () => void child.kill("SIGCONT"),
    kill,
    restart: start,
    async [Symbol.asyncDispose]() {
      for (const made of ports) await made.close().catch(() => undefined);
      for (const client of clients) client.disconnect();
      if (child.exitCode === null && child.signalCode === null) await kill();
      await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}
