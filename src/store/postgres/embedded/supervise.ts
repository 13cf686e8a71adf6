/**
 * Watches the server while this process uses it. If it dies it is started again, by whichever attached process notices first;
 * the others find it running. The same loop says that this process is here, and keeps the log bounded.
 */
import { errorText } from "../../../message/errors.ts";
import { type Loop, startLoop } from "../../../platform/loop.ts";
import { isRunning } from "../../../platform/process-identity.ts";
import type { Registration } from "./attached.ts";
import { stateOfData } from "./data-directory.ts";
import { withLock } from "./directory-lock.ts";
import { ensureServer, type RunningServer } from "./ensure-server.ts";
import { embeddedFailed } from "./failure.ts";
import type { ServerContext } from "./launch.ts";
import { TOUCH_EVERY_MS } from "./presence.ts";
import { boundLog } from "./server-log.ts";

const WATCH_EVERY_MS = 500;
const BACKOFF_MS_MAX = 30_000;
const LOG_CHECK_EVERY_MS = 60_000;

export interface SuperviseOptions {
  readonly context: ServerContext;
  readonly registration: Registration;
  readonly current: () => RunningServer;
  readonly replaced: (server: RunningServer) => void;
  /** Then an interrupted restart is no failure: the server is not wanted any more. */
  readonly stopping: () => boolean;
}

export function supervise({ context, registration, current, replaced, stopping }: SuperviseOptions): Loop {
  const { clock, log, directory } = context;
  let touchedMs = clock.monotonicMs();
  let boundedMs = touchedMs;

  return startLoop({
    clock,
    async step(signal) {
      const nowMs = clock.monotonicMs();
      if (nowMs - touchedMs >= TOUCH_EVERY_MS) {
        touchedMs = nowMs;
        await registration.touch();
      }
      if (nowMs - boundedMs >= LOG_CHECK_EVERY_MS) {
        boundedMs = nowMs;
        await boundLog(directory);
      }
      if (await isRunning(current().identity)) return WATCH_EVERY_MS;
      log(`PostgreSQL (pid ${current().identity.pid}) is gone; bringing it back`);
      const server = await withLock(directory.path, { ...context, own: directory.own, signal }, () => bringBack(context, signal));
      log(
        `PostgreSQL ${server.attached ? "was brought back by another process" : "was started again"} (pid ${server.identity.pid})`,
      );
      replaced(server);
      return WATCH_EVERY_MS;
    },
    failed(error, consecutive) {
      if (stopping()) return 0;
      const waitMs = Math.min(WATCH_EVERY_MS * 2 ** consecutive, BACKOFF_MS_MAX);
      log(`PostgreSQL could not be brought back; next try in ${waitMs} ms: ${errorText(error)}`);
      return waitMs;
    },
  });
}

async function bringBack(context: ServerContext, signal: AbortSignal): Promise<RunningServer> {
  const { directory, binaries } = context;
  // Never made anew here: a directory that vanished under a running process is an accident, not an empty store.
  if ((await stateOfData(directory.pgdata, binaries.major)) === "missing") {
    throw embeddedFailed(`The data in ${directory.pgdata} is gone. Put it back, or stop this process.`, {
      pgdata: directory.pgdata,
    });
  }
  return ensureServer(context, signal);
}
