/**
 * One stoppable loop: runs a step again and again, never twice at once, sleeps as long as the step asks, wakes early when
 * nudged, and survives a step that throws. Stopping waits for the step that is under way.
 */
import type { Clock, Timer } from "./clock.ts";

export interface Loop {
  /** Shortens the sleep. A nudge during a step runs the step once more at once. */
  nudge(): void;
  stop(): Promise<void>;
}

export interface LoopOptions {
  readonly clock: Clock;
  /** Returns how long to sleep before the next step, in ms; 0 means at once. */
  readonly step: (signal: AbortSignal) => Promise<number>;
  /** Called when a step threw; returns how long to wait before the next. */
  readonly failed: (error: unknown, consecutive: number) => number;
}

export function startLoop({ clock, step, failed }: LoopOptions): Loop {
  const controller = new AbortController();
  let nudged = false;
  let timer: Timer | undefined;
  let wakeUp: (() => void) | undefined;
  let failures = 0;

  const rest = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      wakeUp = () => {
        timer?.cancel();
        wakeUp = undefined;
        resolve();
      };
      timer = clock.after(ms, wakeUp);
    });

  const run = async (): Promise<void> => {
    while (!controller.signal.aborted) {
      nudged = false;
      let waitMs: number;
      try {
        waitMs = await step(controller.signal);
        failures = 0;
      } catch (error) {
        failures++;
        waitMs = failed(error, failures);
        nudged = false;
      }
      if (controller.signal.aborted) return;
      if (!nudged && waitMs > 0) await rest(waitMs);
    }
  };
  const running = run();

  return {
    nudge() {
      nudged = true;
      wakeUp?.();
    },
    async stop() {
      controller.abort();
      wakeUp?.();
      await running;
    },
  };
}
