/**
 * Stops a server in an orderly way: clients are disconnected, everything is written, and only then it is reported as stopped.
 * A server that does not obey in time is told to stop at once, which loses nothing: the next start recovers from its log.
 */
import { type Clock, sleep } from "../../../platform/clock.ts";
import { isRunning, type ProcessIdentity } from "../../../platform/process-identity.ts";
import { codeOf, embeddedFailed } from "./failure.ts";

const STEPS: readonly { readonly signal: NodeJS.Signals; readonly waitMs: number }[] = [
  { signal: "SIGINT", waitMs: 60_000 }, // "fast": a last checkpoint, then the end
  { signal: "SIGQUIT", waitMs: 10_000 }, // "immediate": no checkpoint
];
const POLL_MS = 15;

export async function stopServer(server: ProcessIdentity, clock: Clock, log: (message: string) => void): Promise<void> {
  for (const { signal, waitMs } of STEPS) {
    // The start time is looked at each time: the pid may already belong to somebody else.
    if (!(await isRunning(server))) return;
    try {
      process.kill(server.pid, signal);
    } catch (error) {
      if (codeOf(error) === "ESRCH") return;
      throw embeddedFailed(
        `The PostgreSQL with pid ${server.pid} could not be stopped: ${codeOf(error)}.`,
        { pid: server.pid },
        error,
      );
    }
    const deadlineMs = clock.monotonicMs() + waitMs;
    while (clock.monotonicMs() < deadlineMs) {
      if (!(await isRunning(server))) return;
      await sleep(clock, POLL_MS);
    }
    log(`PostgreSQL (pid ${server.pid}) did not stop within ${waitMs / 1_000} s of ${signal}`);
  }
  log(`PostgreSQL (pid ${server.pid}) is left running; the next start will attach to it`);
}
