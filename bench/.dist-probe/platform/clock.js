/** Node's timers overflow above this and fire at once. */
const TIMER_MS_MAX = 2_147_483_647;
export const systemClock = {
    wallMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    after(ms, run, background = false) {
        const handle = setTimeout(run, Math.min(Math.max(0, ms), TIMER_MS_MAX));
        if (background)
            handle.unref();
        return { cancel: () => clearTimeout(handle) };
    },
};
/** Resolves after `ms`, or at once when the signal aborts (it never rejects: the caller looks at the signal). */
export function sleep(clock, ms, signal) {
    return new Promise((resolve) => {
        if (signal?.aborted)
            return resolve();
        const done = () => {
            timer.cancel();
            signal?.removeEventListener("abort", done);
            resolve();
        };
        const timer = clock.after(ms, done);
        signal?.addEventListener("abort", done, { once: true });
    });
}
//# sourceMappingURL=clock.js.map