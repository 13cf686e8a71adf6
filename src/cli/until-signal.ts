/**
 * Runs something until SIGTERM or SIGINT: the first signal stops it in order, a second one ends the process at once. The
 * library never touches signals; this is the only place that does.
 */
import { constants } from "node:os";
import { errorText } from "../message/errors.ts";
import type { Log } from "../observe/log.ts";
import { systemClock, within } from "../platform/clock.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { complain, type Io } from "./io.ts";

export interface Stoppable {
  close(): Promise<void>;
}

/** npm and a terminal may both pass on the same Ctrl-C: that is one signal, not two. */
const SAME_SIGNAL_MS = 500;

/** Beyond the drain: to write what finished, and to close everything. A database that is silent answers none of it. */
const CLOSE_MS = 15_000;

/** `start` gets a function that ends the run as failed. `drainMs`: what attempts under way are given at the end. */
export async function untilSignal(
  io: Io,
  log: Log,
  drainMs: number,
  start: (fail: (reason: string) => void) => Promise<Stoppable>,
): Promise<ExitCode> {
  let failure: string | null = null;
  let end: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  let firstAtMs: number | null = null;
  const onSignal = (signal: NodeJS.Signals): void => {
    const nowMs = systemClock.monotonicMs();
    if (firstAtMs === null) {
      firstAtMs = nowMs;
      log.info("a signal asks to stop", { signal });
      end();
    } else if (nowMs - firstAtMs > SAME_SIGNAL_MS) {
      log.warn("a second signal: stopping at once", { signal });
      process.exit(128 + constants.signals[signal]);
    }
  };
  const onCrash = (error: unknown): void => {
    log.error("an uncaught error: the process ends", { error });
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
    await closeInTime(running, log, drainMs + CLOSE_MS);
  } catch (error) {
    failure = errorText(error);
  }
  if (failure === null) {
    log.info("stopped");
    return EXIT.ok;
  }
  complain(io, `makegood: ${failure}`);
  return EXIT.failed;
}

/** One budget for all of it: the timeouts of one silent store after the other must not add up to a kill by the supervisor. */
async function closeInTime(running: Stoppable, log: Log, budgetMs: number): Promise<void> {
  const closed = await within(
    systemClock,
    running.close().then(() => true),
    budgetMs,
  );
  if (closed === null)
    log.warn("not everything was closed in time: what was not written comes back when its lease ends", { budget_ms: budgetMs });
}
