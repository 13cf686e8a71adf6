/**
 * Brings a directory to the state "one server serves it", whatever is found: a running server is attached to, one that is
 * stopping is waited for, a dead one is started again, on the port it had if that is free. Runs under the lock, so that of
 * several processes exactly one starts the server and the others find it.
 */
import { sleep } from "../../../platform/clock.ts";
import type { ProcessIdentity } from "../../../platform/process-identity.ts";
import { serves } from "./connection.ts";
import { embeddedFailed } from "./failure.ts";
import { findOrphans, findServer, takeOverStale } from "./find-server.ts";
import { launch, SERVE_MS_MAX, type ServerContext } from "./launch.ts";
import { choosePort, previousPort, rememberPort } from "./port.ts";
import { logPath } from "./server-log.ts";

export interface RunningServer {
  readonly identity: ProcessIdentity;
  readonly port: number;
  /** It ran before we came. */
  readonly attached: boolean;
}

const WAIT_MS = 50;
const PORT_TRIES_MAX = 20;
const KILLED_TRIES_MAX = 5;
/** Idle processes of a dead server end at once; one that computes does not notice. Then it is ended. */
const ORPHANS_QUIT_MS = 1_000;
const ORPHANS_KILL_MS = 5_000;

export async function ensureServer(context: ServerContext, signal?: AbortSignal): Promise<RunningServer> {
  const { directory, clock } = context;
  const startedMs = clock.monotonicMs();
  while (!signal?.aborted) {
    const found = await findServer(directory);
    if (found === undefined) {
      const started = await startServer(context, signal);
      if (started) return started;
    } else if (found.port !== undefined && found.status === "ready") {
      if (await serves(found.port, context)) {
        await rememberPort(directory, found.port);
        return { identity: found.identity, port: found.port, attached: true };
      }
    }
    if (clock.monotonicMs() - startedMs > SERVE_MS_MAX) {
      throw embeddedFailed(
        `The PostgreSQL on ${directory.pgdata} (pid ${found?.identity.pid}) has not answered for ${SERVE_MS_MAX / 60_000} minutes. ` +
          `See ${logPath(directory)}; ending that process is safe, what was committed stays.`,
        { pgdata: directory.pgdata, pid: found?.identity.pid },
      );
    }
    await sleep(clock, WAIT_MS, signal);
  }
  throw embeddedFailed(`Stopped before the PostgreSQL on ${directory.pgdata} was ready.`, { pgdata: directory.pgdata });
}

/** Undefined when another server turned out to be there first: an orphan that was still starting. */
async function startServer(context: ServerContext, signal?: AbortSignal): Promise<RunningServer | undefined> {
  const { directory, clock, log } = context;
  const previous = await previousPort(directory);
  let port = await choosePort(previous);
  if (previous !== undefined && port !== previous) log(`port ${previous} is taken; using ${port}`);
  let portTries = 0;
  let killedTries = 0;
  const startedMs = clock.monotonicMs();
  while (!signal?.aborted) {
    await takeOverStale(directory, clock, log);
    const launched = await launch(context, port, signal);
    if (launched.kind === "serving") {
      await rememberPort(directory, launched.port);
      return { identity: launched.identity, port: launched.port, attached: false };
    }
    if (launched.kind === "already_running") return undefined;
    if (launched.kind === "port_taken" && ++portTries < PORT_TRIES_MAX) {
      port = await choosePort(undefined);
      continue;
    }
    if (launched.kind === "killed" && ++killedTries < KILLED_TRIES_MAX) {
      log("PostgreSQL was killed while it started; starting it again");
      await sleep(clock, WAIT_MS * 2 ** killedTries, signal);
      continue;
    }
    const waitedMs = clock.monotonicMs() - startedMs;
    if (launched.kind === "old_processes" && waitedMs < SERVE_MS_MAX) {
      await endOrphans(context, waitedMs);
      await sleep(clock, WAIT_MS, signal);
      continue;
    }
    throw embeddedFailed(
      `PostgreSQL did not start on ${directory.pgdata}: ${launched.output.trim().split("\n").slice(-4).join(" | ")}. ` +
        `See ${logPath(directory)} for the rest. Nothing in the directory was removed.`,
      { pgdata: directory.pgdata, output: launched.output },
    );
  }
  return undefined;
}

/** Safe: their postmaster is dead, so nothing they do can be committed any more, and recovery follows. */
async function endOrphans({ directory, log }: ServerContext, waitedMs: number): Promise<void> {
  if (waitedMs < ORPHANS_QUIT_MS) return;
  const signal = waitedMs < ORPHANS_KILL_MS ? "SIGQUIT" : "SIGKILL";
  for (const pid of await findOrphans(directory.pgdata)) {
    log(`ending process ${pid} of the dead server, which still holds its memory (${signal})`);
    try {
      process.kill(pid, signal);
    } catch {
      // It ended by itself meanwhile.
    }
  }
}
