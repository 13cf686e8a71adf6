/**
 * Runs something until SIGTERM or SIGINT: the first signal stops it in order, a second one ends the process at once. The
 * library never touches signals; this is the only place that does.
 */
import { constants } from "node:os";
import { errorText } from "../message/errors.js";
import { systemClock } from "../platform/clock.js";
import { EXIT } from "./exit-code.js";
import { complain } from "./io.js";
/** npm and a terminal may both pass on the same Ctrl-C: that is one signal, not two. */
const SAME_SIGNAL_MS = 500;
/** `start` gets a function that ends the run as failed. */
export async function untilSignal(io, log, start) {
    let failure = null;
    let end = () => { };
    const ended = new Promise((resolve) => {
        end = resolve;
    });
    let firstAtMs = null;
    const onSignal = (signal) => {
        const nowMs = systemClock.monotonicMs();
        if (firstAtMs === null) {
            firstAtMs = nowMs;
            log.info("a signal asks to stop", { signal });
            end();
        }
        else if (nowMs - firstAtMs > SAME_SIGNAL_MS) {
            log.warn("a second signal: stopping at once", { signal });
            process.exit(128 + constants.signals[signal]);
        }
    };
    const onCrash = (error) => {
        log.error("an error that nobody caught: the process ends", { error });
        complain(io, `makegood: ${errorText(error)}`);
        process.exit(EXIT.failed);
    };
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
    process.on("uncaughtException", onCrash).on("unhandledRejection", onCrash);
    try {
        const running = await start((reason) => {
            failure = reason;
            log.error("stopping because something broke", { reason });
            end();
        });
        await ended;
        await running.close();
    }
    catch (error) {
        failure = errorText(error);
    }
    if (failure === null) {
        log.info("stopped");
        return EXIT.ok;
    }
    complain(io, `makegood: ${failure}`);
    return EXIT.failed;
}
//# sourceMappingURL=until-signal.js.map