/**
 * Starts one postmaster and waits until it serves, or tells why it does not. The server is detached: it has a session of its
 * own, so that a Ctrl-C meant for us does not reach it before our work is settled, and it outlives us when we are killed.
 * What durability needs is on its command line, where no configuration file can turn it off.
 */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "../../../message/errors.ts";
import { type Clock, sleep } from "../../../platform/clock.ts";
import type { ProcessIdentity } from "../../../platform/process-identity.ts";
import type { Binaries } from "./binaries.ts";
import { serves } from "./connection.ts";
import type { DataDirectory } from "./data-directory.ts";
import { findServer } from "./find-server.ts";
import { CONNECTIONS_MAX } from "./initialize.ts";
import { SERVER_ENV } from "./run-program.ts";
import { openLog, readLog } from "./server-log.ts";

/** Everything that the steps around one server need to know. */
export interface ServerContext {
  readonly directory: DataDirectory;
  readonly binaries: Binaries;
  readonly password: string;
  readonly clock: Clock;
  readonly log: (message: string) => void;
  /** Called when a server that this process started ends. */
  readonly onExit: () => void;
}

/** `killed`: somebody ended it while it started, which says nothing against the next try. */
export type Reason = "port_taken" | "old_processes" | "already_running" | "killed" | "failed";

export type Launched =
  | { readonly kind: "serving"; readonly identity: ProcessIdentity; readonly port: number }
  | { readonly kind: Reason; readonly output: string };

const POLL_MS = 15;
/** Crash recovery reads the log since the last checkpoint; that can take minutes, but not for ever. */
export const SERVE_MS_MAX = 600_000;

export async function launch(context: ServerContext, port: number, signal?: AbortSignal): Promise<Launched> {
  const { directory, clock } = context;
  const log = await openLog(directory);
  let ended: string | undefined;
  try {
    const child = spawn(context.binaries.postgres, [...commandLine(directory, port), ...(await enoughConnections(directory))], {
      ...directory.user,
      cwd: directory.path,
      env: SERVER_ENV,
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
    });
    child.on("error", (error) => {
      ended = errorText(error);
    });
    child.on("exit", (code, killedBy) => {
      ended = `it ended with ${killedBy ?? code}`;
      context.onExit();
    });
    child.unref();
    const deadlineMs = clock.monotonicMs() + SERVE_MS_MAX;
    while (ended === undefined && clock.monotonicMs() < deadlineMs && !signal?.aborted) {
      const found = await findServer(directory);
      if (found?.port !== undefined && found.identity.pid === child.pid && found.status === "ready") {
        if (await serves(found.port, context)) return { kind: "serving", identity: found.identity, port: found.port };
      }
      await sleep(clock, POLL_MS, signal);
    }
    const output = `${await readLog(directory, log.from)}\n${ended ?? "it does not answer"}`;
    return { kind: reasonOf(output), output };
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
    password_encryption: "scram-sha-256",
    // The reasons below are read from the log, in English, from this file.
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

function reasonOf(output: string): Reason {
  if (/could not (bind|create any TCP\/IP sockets)/.test(output)) return "port_taken";
  if (output.includes("pre-existing shared memory block")) return "old_processes";
  if (/lock file "postmaster\.pid" (already exists|is empty)/.test(output)) return "already_running";
  return /it ended with SIG(KILL|TERM|INT|QUIT)$/.test(output) ? "killed" : "failed";
}
