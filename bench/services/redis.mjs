// Redis for one run: a server of its own on a free loopback port, as durable as BullMQ's users run it (AOF, every second), or synced
// before each answer.
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { sleep } from "../lib/time.mjs";
import { freePort, stopProcess } from "./directory.mjs";

export const redisSettings = 'appendonly yes, appendfsync everysec (always where said), maxmemory-policy noeviction, save ""';

/** `appendfsync`: everysec or always. */
export async function startRedis(parent, appendfsync = "everysec") {
  requireBinary();
  const directory = join(parent, `redis-${appendfsync}`);
  mkdirSync(directory);
  const port = await freePort();
  const password = randomBytes(16).toString("hex");
  const lines = [
    "bind 127.0.0.1",
    `port ${port}`,
    `requirepass ${password}`,
    `dir ${directory}`,
    "appendonly yes",
    `appendfsync ${appendfsync}`,
    "maxmemory-policy noeviction",
    'save ""',
  ];
  const configPath = join(directory, "redis.conf");
  writeFileSync(configPath, `${lines.join("\n")}\n`, { mode: 0o600 });
  const log = openSync(join(directory, "redis.log"), "a");
  const child = spawn("redis-server", [configPath], { stdio: ["ignore", log, log] });

  const connection = { host: "127.0.0.1", port, password };
  return {
    connection,
    version: await untilUp(connection, child),
    stop: () => stopProcess(child, "SIGTERM"),
    kill: () => child.kill("SIGKILL"),
  };
}

function requireBinary() {
  const present = () => spawnSync("redis-server", ["--version"]).status === 0;
  if (present()) return;
  if (process.getuid?.() === 0 && spawnSync("apt-get", ["--version"]).status === 0) {
    console.log("redis-server is missing: apt-get install redis-server");
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    const install = () => spawnSync("apt-get", ["install", "-y", "-q", "redis-server"], { env, stdio: "ignore" });
    if (install().status !== 0) {
      spawnSync("apt-get", ["update", "-q"], { env, stdio: "ignore" });
      install();
    }
    if (present()) return;
  }
  throw new Error("redis-server is missing: install it, or leave BullMQ out with --peers makegood,raw,pgboss,graphile");
}

async function untilUp(connection, child) {
  for (let tries = 0; tries < 100; tries++) {
    if (child.exitCode !== null) break;
    const redis = new Redis({ ...connection, lazyConnect: true, retryStrategy: () => null });
    redis.on("error", () => {});
    try {
      await redis.connect();
      const info = await redis.info("server");
      return /redis_version:(\S+)/.exec(info)[1];
    } catch {
      await sleep(100);
    } finally {
      redis.disconnect();
    }
  }
  throw new Error("redis-server did not start");
}
