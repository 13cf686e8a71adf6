/**
 * PgBouncer in transaction mode in front of a test server, for the suites that must not need a server session. It refuses
 * root, as PostgreSQL does, and runs as `nobody` then.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmod, chown, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { findPgBouncer } from "./find-pgbouncer.mjs";
import { freePort } from "./free-port.ts";

const NOBODY = 65_534;
const READY_MS_MAX = 10_000;
const asRoot = process.geteuid?.() === 0;

export interface PgBouncer {
  /** The same role, password and database as the server's own URL, through the pooler. */
  readonly url: string;
  close(): Promise<void>;
}

export interface PgBouncerOptions {
  /** Server connections for all clients together. */
  readonly poolSize: number;
}

export async function startPgBouncer(serverUrl: string, { poolSize }: PgBouncerOptions): Promise<PgBouncer> {
  const program = await findPgBouncer();
  const folder = await mkdtemp(join(tmpdir(), "makegood-pgbouncer-"));
  const url = new URL(serverUrl);
  const server = { host: url.hostname, port: url.port };
  url.host = `127.0.0.1:${await freePort()}`;
  await writeSettings(folder, url, server, poolSize);
  const child = spawn(program, [join(folder, "pgbouncer.ini")], {
    cwd: folder,
    stdio: "ignore",
    ...(asRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  child.on("error", () => undefined); // ready() says that it does not serve
  const stop = () => child.kill("SIGTERM");
  process.once("exit", stop);
  const close = async () => {
    process.off("exit", stop);
    const ended = new Promise((resolve) => child.once("exit", resolve));
    if (child.exitCode === null && child.signalCode === null) {
      stop();
      await ended;
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  try {
    await ready(url.href, child, join(folder, "pgbouncer.log"));
  } catch (error) {
    await close();
    throw error;
  }
  return { url: url.href, close };
}

async function writeSettings(folder: string, url: URL, server: { host: string; port: string }, poolSize: number): Promise<void> {
  const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(decodeURIComponent);
  const settings = `[databases]
${database} = host=${server.host} port=${server.port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${url.port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, "users.txt")}
logfile = ${join(folder, "pgbouncer.log")}
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
`;
  await writeFile(join(folder, "users.txt"), `"${user}" "${password}"\n`, { mode: 0o600 });
  await writeFile(join(folder, "pgbouncer.ini"), settings);
  if (!asRoot) return;
  for (const path of [folder, join(folder, "users.txt")]) await chown(path, NOBODY, NOBODY);
  await chmod(folder, 0o755);
}

async function ready(url: string, child: ChildProcess, log: string): Promise<void> {
  let last: unknown;
  for (const end = performance.now() + READY_MS_MAX; performance.now() < end && child.exitCode === null; await sleep(20)) {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => undefined);
    try {
      await client.connect();
      await client.query("select 1");
      return;
    } catch (error) {
      last = error;
    } finally {
      await client.end().catch(() => undefined);
    }
  }
  const said = await readFile(log, "utf8").catch(() => "");
  throw new Error(`PgBouncer does not serve: ${last instanceof Error ? last.message : last}\n${said.slice(-2_000)}`);
}
