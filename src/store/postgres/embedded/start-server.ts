/**
 * Brings a directory to the state "one server serves it", whatever is found: a running server is attached to, one that starts
 * or stops is waited for, a dead one is started again, on the port it had if that is free. Runs under the lock, so that of
 * several processes exactly one starts the server and the others find it. What durability needs is on the server's command
 * line, where no configuration file can turn it off.
 */
import { spawn } from "node:child_process";
import { copyFile, open, readFile, stat, truncate } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { errorText } from "../../../message/errors.ts";
import { backoffMs } from "../../../platform/backoff.ts";
import { sleep } from "../../../platform/clock.ts";
import type { ProcessIdentity } from "../../../platform/process-identity.ts";
import { systemRandom } from "../../../platform/random.ts";
import type { Binaries } from "./binaries.ts";
import { whyNotServing } from "./connection.ts";
import type { DataDirectory } from "./data-directory.ts";
import { embeddedFailed, unless } from "./failure.ts";
import { endOrphans, findServer, takeOverStale } from "./find-server.ts";
import { CONNECTIONS_MAX } from "./initialize.ts";
import { SERVER_ENV } from "./server-user.ts";

/** Everything that is needed to start a server. */
export interface ServerContext {
  readonly directory: DataDirectory;
  readonly binaries: Binaries;
  readonly password: string;
  /** Called when a server that this process started ends. */
  readonly onExit: () => void;
}

export interface RunningServer {
  readonly identity: ProcessIdentity;
  readonly port: number;
  /** It ran before we came. */
  readonly attached: boolean;
}

const POLL_MS = 15;
/** Crash recovery reads the log since the last checkpoint; that can take minutes, but not for ever. */
const SERVE_MS_MAX = 600_000;
const AGAIN_MS = 50;
const PORT_TRIES_MAX = 20;
const KILLED_TRIES_MAX = 5;
const KILLED_BACKOFF = { firstMs: 100, maxMs: 1_000 };
/** Idle processes of a dead server end at once; one that computes does not notice. Then it is ended. */
const ORPHANS_QUIT_MS = 1_000;
const ORPHANS_KILL_MS = 5_000;
const PORT_FIRST = 20_000;
const PORT_COUNT = 10_000;
const PORT_LOOKS_MAX = 200;
const LOG_BYTES_MAX = 10 * 1024 * 1024;
const LOG_TAIL_BYTES_MAX = 16_384;

export async function ensureServer(context: ServerContext, signal?: AbortSignal): Promise<RunningServer> {
  const { directory, password } = context;
  const { clock, log, pgdata } = directory;
  const tries: Tries = { sinceMs: clock.monotonicMs(), port: undefined, taken: 0, killed: 0 };
  let launched: Launched | undefined;
  let silence = "";
  while (!signal?.aborted) {
    const found = await findServer(directory);
    if (found?.ready && found.port > 0) {
      const reason = await whyNotServing(found.port, password, pgdata);
      const { identity, port } = found;
      if (reason === undefined) return { identity, port, attached: identity.pid !== launched?.pid };
      // It is asked many times a second; the same reason is told once.
      if (reason !== silence) log(`PostgreSQL on port ${port} does not answer yet: ${reason}`);
      silence = reason;
    }
    if (clock.monotonicMs() - tries.sinceMs > SERVE_MS_MAX) {
      throw embeddedFailed(
        `The PostgreSQL on ${pgdata} (pid ${found?.identity.pid}) has not answered for ${SERVE_MS_MAX / 60_000} minutes. ` +
          `See ${logPath(directory)}; ending that process is safe, what was committed stays.`,
        { pgdata, pid: found?.identity.pid },
      );
    }
    if (found === undefined && (launched === undefined || launched.ended !== undefined)) {
      if (launched) await learnFrom(launched, tries, directory, signal);
      if (!signal?.aborted) launched = await launch(context, tries);
    }
    await sleep(clock, POLL_MS, signal);
  }
  throw embeddedFailed(`Stopped before the PostgreSQL on ${pgdata} was ready.`, { pgdata });
}

interface Launched {
  readonly pid: number | undefined;
  /** Where its lines in the log begin. */
  readonly logFrom: number;
  /** How it ended, once it has. */
  ended: string | undefined;
}

interface Tries {
  readonly sinceMs: number;
  /** Undefined until one is chosen, and after it turned out to be taken. */
  port: number | undefined;
  /** How often it was, and how often the server was killed while it started. */
  taken: number;
  killed: number;
}

/** Looks at why a server ended before it served, and does what helps the next one. Throws when nothing would. */
async function learnFrom(launched: Launched, tries: Tries, directory: DataDirectory, signal?: AbortSignal): Promise<void> {
  const { clock, log, pgdata } = directory;
  const output = `${await readLog(directory, launched.logFrom)}\n${launched.ended}`;
  await sleep(clock, AGAIN_MS, signal);
  if (/could not (bind|create any TCP\/IP sockets)/.test(output) && ++tries.taken < PORT_TRIES_MAX) {
    tries.port = undefined;
    return;
  }
  // An orphan that is still starting, or stopping: it is found in a moment.
  if (/lock file "postmaster\.pid" (already exists|is empty)/.test(output)) return;
  if (output.includes("pre-existing shared memory block")) {
    const waitedMs = clock.monotonicMs() - tries.sinceMs;
    if (waitedMs > ORPHANS_QUIT_MS) await endOrphans(directory, waitedMs < ORPHANS_KILL_MS ? "SIGQUIT" : "SIGKILL");
    return;
  }
  // By a person or the system, which says nothing against the next try.
  if (/it ended with SIG(KILL|TERM|INT|QUIT)$/.test(output) && ++tries.killed < KILLED_TRIES_MAX) {
    log("PostgreSQL was killed while it started; starting it again");
    return sleep(clock, backoffMs(KILLED_BACKOFF, tries.killed), signal);
  }
  throw embeddedFailed(
    `PostgreSQL did not start on ${pgdata}: ${output.trim().split("\n").slice(-4).join(" | ")}. ` +
      `See ${logPath(directory)} for the rest. Nothing in the directory was removed.`,
    { pgdata, output },
  );
}

/**
 * Starts one postmaster. It is detached: it has a session of its own, so that a Ctrl-C meant for us does not reach it before
 * our work is settled, and it outlives us when we are killed.
 */
async function launch({ directory, binaries, onExit }: ServerContext, tries: Tries): Promise<Launched> {
  await takeOverStale(directory);
  await boundLog(directory);
  tries.port ??= await choosePort(directory, tries.taken === 0);
  const args = [...commandLine(directory, tries.port), ...(await enoughConnections(directory))];
  const log = await open(logPath(directory), "a", 0o600);
  try {
    await directory.own(logPath(directory));
    const logFrom = (await log.stat()).size;
    const stdio = ["ignore" as const, log.fd, log.fd];
    const child = spawn(binaries.postgres, args, {
      ...directory.user,
      cwd: directory.path,
      env: SERVER_ENV,
      detached: true,
      stdio,
    });
    const launched: Launched = { pid: child.pid, logFrom, ended: undefined };
    child.on("error", (error) => {
      launched.ended = errorText(error);
    });
    child.on("exit", (code, killedBy) => {
      launched.ended = `it ended with ${killedBy ?? code}`;
      onExit();
    });
    child.unref();
    return launched;
  } finally {
    await log.close();
  }
}

function commandLine(directory: DataDirectory, port: number): string[] {
  const settings = {
    port,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    fsync: "on",
    synchronous_commit: "on",
    full_page_writes: "on",
    // Nobody watches this server: a client that forgot its transaction must not hold up vacuum for ever.
    idle_in_transaction_session_timeout: "1h",
    password_encryption: "scram-sha-256",
    // Why it did not start is read from the log, in English, from this file.
    lc_messages: "C",
    log_destination: "stderr",
    logging_collector: "off",
  };
  return ["-D", directory.pgdata, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
}

/** What initdb and the version before wrote down; anything else is the operator's, and stays. */
const TOO_FEW = "100";

/** A directory that was made before has too few connections for ten processes of ours. What ALTER SYSTEM set counts after the file. */
async function enoughConnections({ pgdata }: DataDirectory): Promise<string[]> {
  const files = ["postgresql.conf", "postgresql.auto.conf"].map((name) => readFile(join(pgdata, name), "utf8").catch(() => ""));
  const said =
    [...(await Promise.all(files)).join("\n").matchAll(/^\s*max_connections\s*=?\s*'?(\d+)/gim)].at(-1)?.[1] ?? TOO_FEW;
  return said === TOO_FEW ? ["-c", `max_connections=${CONNECTIONS_MAX}`] : [];
}

/**
 * The port on 127.0.0.1 that the server had before if that is free, so that URLs stay valid; otherwise a free one below the
 * range from which the system takes ports for outgoing connections, so that it is still free after a restart.
 */
async function choosePort({ pgdata, log }: DataDirectory, keep: boolean): Promise<number> {
  // PostgreSQL writes its command line there once it listens.
  const options = await readFile(join(pgdata, "postmaster.opts"), "utf8").catch(() => "");
  const previous = Number(/"port=(\d+)"/.exec(options)?.[1] ?? 0);
  if (previous > 0 && keep && (await isFree(previous))) return previous;
  for (let looks = 0; looks < PORT_LOOKS_MAX; looks++) {
    const port = PORT_FIRST + Math.floor(systemRandom.next() * PORT_COUNT);
    if (port === previous || !(await isFree(port))) continue;
    if (previous > 0) log(`port ${previous} is taken; using ${port}`);
    return port;
  }
  const last = PORT_FIRST + PORT_COUNT - 1;
  throw embeddedFailed(`No free port was found on 127.0.0.1 between ${PORT_FIRST} and ${last}. See what listens there.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

/** Private, appended to, and bounded. */
function logPath(directory: DataDirectory): string {
  return join(directory.path, "postgres.log");
}

/**
 * Keeps what is there as `postgres.log.1` and starts again from nothing, once it is too long. A server may run for months, so
 * it is bounded while it runs too: the server appends, so cutting the file to nothing is safe.
 */
export async function boundLog(directory: DataDirectory): Promise<void> {
  const path = logPath(directory);
  const found = await unless(["ENOENT"], stat(path));
  if (!found || found.size <= LOG_BYTES_MAX) return;
  await copyFile(path, `${path}.1`);
  await truncate(path, 0);
  await directory.own(`${path}.1`);
}

/** The last of what the server wrote since `from`. */
async function readLog(directory: DataDirectory, from: number): Promise<string> {
  const text = await readFile(logPath(directory));
  return text.subarray(Math.max(from, text.length - LOG_TAIL_BYTES_MAX)).toString("utf8");
}
