/**
 * A PostgreSQL server of a test's own, for what the embedded one never lets happen: other settings, another clock, a disk that a test gives
 * it, an end without its supervisor. Nothing brings it back but the test.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { systemClock } from "../../src/platform/clock.ts";
import { locateNative, usableBinaries } from "../../src/store/postgres/embedded/binaries.ts";
import { urlOf } from "../../src/store/postgres/embedded/connection.ts";
import { openDirectory } from "../../src/store/postgres/embedded/data-directory.ts";
import { SERVER_ENV } from "../../src/store/postgres/embedded/server-user.ts";
import { atEnd } from "./at-end.ts";
import { copyTemplate } from "./embedded-template.ts";
import { freePort } from "./free-port.ts";
import { workspace } from "./processes.ts";

export interface OwnPostgresOptions {
  /** Holds `pgdata`, password and log; made and filled unless it is there with its data. */
  readonly folder?: string;
  readonly settings?: Readonly<Record<string, string | number>>;
  readonly env?: NodeJS.ProcessEnv;
  /** The folder has its data already. */
  readonly filled?: boolean;
}

export interface OwnPostgres {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly pgdata: string;
  /** The postmaster's, of the server that runs or ran last. */
  readonly pid: number;
  readonly user: { readonly uid?: number; readonly gid?: number };
  readonly running: boolean;
  log(): Promise<string>;
  start(settings?: OwnPostgresOptions["settings"]): Promise<void>;
  /** SIGINT (default) is an orderly end. SIGKILL takes every process of it at once, as the end of the machine would. */
  stop(signal?: "SIGINT" | "SIGKILL"): Promise<void>;
  /** Resolves when the postmaster has ended, by whatever. */
  ended(): Promise<void>;
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
}

const READY_MS_MAX = 60_000;
const running = new Set<OwnPostgres>();

atEnd(async () => {
  for (const server of running) await server.stop("SIGKILL");
});

export async function ownPostgres(options: OwnPostgresOptions = {}): Promise<OwnPostgres> {
  const folder = options.folder ?? (await workspace());
  if (!options.filled) await copyTemplate(folder);
  const directory = await openDirectory(folder, systemClock, () => undefined);
  const binaries = await usableBinaries(locateNative(), directory);
  const password = (await readFile(join(folder, "password"), "utf8")).trim();
  const port = await freePort();
  const url = urlOf(port, password);
  const logFile = join(await workspace(), "postgres.log");
  let settings = options.settings ?? {};
  let child: ChildProcess | undefined;
  let exited: Promise<void> = Promise.resolve();
  let alive = false;

  const server: OwnPostgres = {
    url,
    port,
    folder,
    pgdata: directory.pgdata,
    user: directory.user,
    get pid() {
      return child?.pid ?? 0;
    },
    get running() {
      return alive;
    },
    log: () => readFile(logFile, "utf8").catch(() => ""),
    ended: () => exited,
    async start(other = settings) {
      settings = other;
      const log = await open(logFile, "a", 0o666);
      const given = { port, listen_addresses: "127.0.0.1", unix_socket_directories: "", lc_messages: "C", ...settings };
      const args = Object.entries(given).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
      const stdio = ["ignore" as const, log.fd, log.fd];
      const env = { ...SERVER_ENV, ...options.env };
      const fresh = spawn(binaries.postgres, ["-D", directory.pgdata, ...args], { ...directory.user, cwd: "/", env, stdio });
      await log.close();
      [child, alive] = [fresh, true];
      running.add(server);
      exited = new Promise((resolve) => {
        fresh.once("exit", () => {
          alive = false;
          running.delete(server);
          resolve();
        });
      });
      await untilReady(server);
    },
    async stop(signal = "SIGINT") {
      if (!alive || !child?.pid) return;
      if (signal === "SIGKILL") await killServer(child.pid);
      else child.kill(signal);
      await exited;
    },
    async sql(text, values) {
      const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
      client.on("error", () => undefined);
      await client.connect();
      try {
        return (await client.query(text, values)).rows;
      } finally {
        await client.end().catch(() => undefined);
      }
    },
  };
  await server.start();
  return server;
}

async function untilReady(server: OwnPostgres): Promise<void> {
  const end = performance.now() + READY_MS_MAX;
  while (server.running && performance.now() < end) {
    const up = await server.sql("select 1").then(
      () => true,
      () => false,
    );
    if (up) return;
    await sleep(25);
  }
  throw new Error(`PostgreSQL did not start: ${(await server.log()).slice(-1_000)}`);
}

/** The postmaster and every process that it started, as the end of the machine would. */
export async function killServer(postmaster: number): Promise<void> {
  // Frozen first: it starts no other one, and none ends in an order of its own.
  process.kill(postmaster, "SIGSTOP");
  const all = [postmaster, ...(await childrenOf(postmaster))];
  for (const pid of all) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // gone by itself
    }
  }
  for (const pid of all) while (await isAlive(pid)) await sleep(5);
}

/** They have sessions of their own, so that no signal reaches them by way of the group. */
async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return text.split(" ").map(Number).filter(Boolean);
}

/** A zombie does not run: an orphan's new parent may be slow to collect it. */
async function isAlive(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return text !== "" && text.slice(text.lastIndexOf(")") + 2)[0] !== "Z";
}
