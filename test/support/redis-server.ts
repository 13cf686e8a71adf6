/**
 * Real Redis servers for tests: one of its own for a file, on a free loopback port, with the settings that the test wants; to be
 * killed, restarted, paused and asked. The program is found, or installed with apt-get where we are root; otherwise one line
 * says what to install.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "redis";
import { atEnd } from "./at-end.ts";
import { findTool } from "./find-tool.mjs";
import { freePort } from "./free-port.ts";
import { roomyMemory } from "./roomy-memory.ts";

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  /** Where it keeps its data and its log. */
  readonly folder: string;
  /** One command on a connection of its own. */
  ask(...args: string[]): Promise<unknown>;
  signal(signal: NodeJS.Signals): void;
  /** Ends it and waits for the end; SIGKILL is a crash. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port and directory; `settings` instead of those before. */
  start(settings?: readonly string[]): Promise<void>;
}

/** Durable as it should be: `appendonly yes`, `appendfsync everysec`, `noeviction`. */
export const DURABLE: readonly string[] = [
  "--appendonly",
  "yes",
  "--appendfsync",
  "everysec",
  "--maxmemory-policy",
  "noeviction",
];
export const NOT_PERSISTENT: readonly string[] = ["--appendonly", "no"];

const running = new Set<ChildProcess>();
const folders: string[] = [];

atEnd(async () => {
  for (const child of running) child.kill("SIGKILL");
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

/** `env`: of the server's process, beside ours. `folder`: instead of one that is made for it. `sentinel`: a Sentinel, which knows no server yet. */
export async function startRedis(
  settings: readonly string[] = DURABLE,
  given: { readonly env?: NodeJS.ProcessEnv; readonly folder?: string; readonly sentinel?: boolean } = {},
): Promise<RedisServer> {
  const program = await findRedis();
  const folder = given.folder ?? (await mkdtemp(join(await roomyMemory(), "makegood-redis-")));
  if (given.folder === undefined) folders.push(folder);
  const port = await freePort();
  let child: ChildProcess | undefined;
  let now = settings;

  const server: RedisServer = {
    port,
    folder,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return child?.pid ?? 0;
    },
    async ask(...args) {
      const client = createClient({ url: server.url, RESP: 2, socket: { reconnectStrategy: false } });
      client.on("error", () => {});
      await client.connect();
      try {
        return await client.sendCommand(args);
      } finally {
        client.destroy();
      }
    },
    signal: (signal) => void child?.kill(signal),
    async stop(signal = "SIGTERM") {
      const ending = child;
      if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
      const ended = new Promise((resolve) => ending.once("exit", resolve));
      ending.kill("SIGCONT");
      ending.kill(signal);
      await ended;
    },
    async start(other) {
      now = other ?? now;
      const fixed = [
        "--bind",
        "127.0.0.1",
        "--port",
        String(port),
        "--dir",
        folder,
        "--save",
        "",
        "--logfile",
        join(folder, "log"),
      ];
      // A Sentinel keeps in its file what it knows.
      const file = join(folder, "sentinel.conf");
      if (given.sentinel) await appendFile(file, "");
      const fresh = spawn(program, [...(given.sentinel ? [file, "--sentinel"] : []), ...fixed, ...now], {
        stdio: "ignore",
        env: { ...process.env, ...given.env },
      });
      child = fresh;
      running.add(fresh);
      fresh.once("exit", () => running.delete(fresh));
      await untilUp(server, fresh, join(folder, "log"));
    },
  };
  await server.start();
  return server;
}

async function untilUp(server: RedisServer, child: ChildProcess, log: string): Promise<void> {
  for (let tries = 0; tries < 200 && child.exitCode === null; tries++) {
    const up = await server.ask("PING").then(
      () => true,
      (error: Error) => /^(NOAUTH|NOPERM)/.test(error.message),
    );
    if (up) return;
    await sleep(25);
  }
  throw new Error(`redis-server did not start: ${(await readFile(log, "utf8").catch(() => "")).slice(-500)}`);
}

export function findRedis(): Promise<string> {
  const need = "the Redis tests need it";
  return findTool({ files: ["redis-server"], packages: ["redis-server"], need, remedy: "macOS: brew install redis" });
}
