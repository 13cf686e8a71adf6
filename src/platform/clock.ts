/**
 * The only door to time and timers. Wall time is for ids and people; durations use the monotonic clock; what is due and
 * whose lease has ended is the store's clock alone.
 */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  wallMs(): number;
  /** Monotonic, milliseconds from an arbitrary start. */
  monotonicMs(): number;
  /** Runs once after `ms`. `background`: does not keep the process alive. */
  after(ms: number, run: () => void, background?: boolean): Timer;
}

/** Node's timers overflow above this and fire at once. */
const TIMER_MS_MAX = 2_147_483_647;

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(ms, run, background = false) {
    const handle = setTimeout(run, Math.min(Math.max(0, ms), TIMER_MS_MAX));
    if (background) handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
};

/** The same clock with timers that do not keep the process alive. */
export function inBackground(clock: Clock): Clock {
  return {
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    after: (ms, run) => clock.after(ms, run, true),
  };
}

/** What `work` gives, or null when it takes longer than `ms` or the signal aborts; it goes on then, and its result is ignored. */
export function within<T>(clock: Clock, work: Promise<T>, ms: number, signal?: AbortSignal): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const cut = (): void => {
      over();
      resolve(null);
    };
    const timer = clock.after(Math.max(0, ms), cut);
    const over = (): void => {
      timer.cancel();
      signal?.removeEventListener("abort", cut);
    };
    signal?.addEventListener("abort", cut, { once: true });
    if (signal?.aborted) cut();
    work.then(resolve, reject);
    work.then(over, over);
  });
}

/** Resolves after `ms`, or at once when the signal aborts (it never rejects: the caller looks at the signal). */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      timer.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = clock.after(ms, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}
