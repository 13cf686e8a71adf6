export function startLoop({ clock, step, failed }) {
    const controller = new AbortController();
    let nudged = false;
    let timer;
    let wakeUp;
    let failures = 0;
    const rest = (ms) => new Promise((resolve) => {
        wakeUp = () => {
            timer?.cancel();
            wakeUp = undefined;
            resolve();
        };
        timer = clock.after(ms, wakeUp);
    });
    const run = async () => {
        while (!controller.signal.aborted) {
            nudged = false;
            let waitMs;
            try {
                waitMs = await step(controller.signal);
                failures = 0;
            }
            catch (error) {
                failures++;
                waitMs = failed(error, failures);
                nudged = false;
            }
            if (controller.signal.aborted)
                return;
            if (!nudged && waitMs > 0)
                await rest(waitMs);
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
//# sourceMappingURL=loop.js.map