/**
 * Watches the server while this process uses it. If it dies it is started again, by whichever attached process notices first;
 * the others find it running. The same loop says that this process is here, and keeps the log bounded.
 */
import { errorText } from "../../../message/errors.js";
import { startLoop } from "../../../platform/loop.js";
import { stateOfData } from "./data-directory.js";
import { withLock } from "./directory-lock.js";
import { ensureServer } from "./ensure-server.js";
import { embeddedFailed } from "./failure.js";
import { TOUCH_EVERY_MS } from "./presence.js";
import { isRunning } from "./process-identity.js";
import { boundLog } from "./server-log.js";
const WATCH_EVERY_MS = 500;
const BACKOFF_MS_MAX = 30_000;
const LOG_CHECK_EVERY_MS = 60_000;
export function supervise({ context, registration, current, replaced, stopping }) {
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
            if (await isRunning(current().identity))
                return WATCH_EVERY_MS;
            log(`PostgreSQL (pid ${current().identity.pid}) is gone; bringing it back`);
            const server = await withLock(directory.path, { ...context, own: directory.own, signal }, () => bringBack(context, signal));
            log(`PostgreSQL ${server.attached ? "was brought back by another process" : "was started again"} (pid ${server.identity.pid})`);
            replaced(server);
            return WATCH_EVERY_MS;
        },
        failed(error, consecutive) {
            if (stopping())
                return 0;
            const waitMs = Math.min(WATCH_EVERY_MS * 2 ** consecutive, BACKOFF_MS_MAX);
            log(`PostgreSQL could not be brought back; next try in ${waitMs} ms: ${errorText(error)}`);
            return waitMs;
        },
    });
}
async function bringBack(context, signal) {
    const { directory, binaries } = context;
    // Never made anew here: a directory that vanished under a running process is an accident, not an empty store.
    if ((await stateOfData(directory.pgdata, binaries.major)) === "missing") {
        throw embeddedFailed(`The data in ${directory.pgdata} is gone. Put it back, or stop this process.`, {
            pgdata: directory.pgdata,
        });
    }
    return ensureServer(context, signal);
}
//# sourceMappingURL=supervise.js.map