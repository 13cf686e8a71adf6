/**
 * The last answer of something that may hang: asks at most once at a time and never makes a caller wait longer than it
 * said it would. What comes back says how old it is.
 */
import { errorText } from "../message/errors.js";
import { sleep } from "../platform/clock.js";
export function createLastAnswer(clock, keptMs, ask) {
    let value;
    let error = null;
    let answeredAtMs = null;
    let tookMs = null;
    let underWay = null;
    const start = () => {
        const since = clock.monotonicMs();
        const settle = (failed) => {
            error = failed;
            tookMs = Math.round(clock.monotonicMs() - since);
            underWay = null;
        };
        const done = ask().then((answer) => {
            value = answer;
            answeredAtMs = clock.monotonicMs();
            settle(null);
        }, (thrown) => settle(errorText(thrown)));
        return { since, done };
    };
    return {
        async read(waitMs) {
            const fresh = error === null && answeredAtMs !== null && clock.monotonicMs() - answeredAtMs <= keptMs;
            if (!fresh) {
                underWay ??= start();
                // Who asks after others have waited in vain waits only for what is left.
                const leftMs = waitMs - (clock.monotonicMs() - underWay.since);
                const late = new AbortController();
                if (leftMs > 0)
                    await Promise.race([underWay.done, sleep(clock, leftMs, late.signal)]);
                late.abort();
            }
            const now = clock.monotonicMs();
            // A question without an answer is a failure as soon as somebody has waited for it.
            const silentMs = underWay === null ? 0 : Math.round(now - underWay.since);
            const silence = silentMs > 0 && !fresh ? `no answer for ${silentMs} ms` : null;
            return { value, error: silence ?? error, ageMs: answeredAtMs === null ? null : Math.round(now - answeredAtMs), tookMs };
        },
    };
}
//# sourceMappingURL=last-answer.js.map