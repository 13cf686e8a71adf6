const START = { due: "-infinity", id: "00000000-0000-0000-0000-000000000000" };
const AGE_MS_MAX = 500;
export function createWatermarks(monotonicMs) {
    const marks = new Map();
    return {
        of(lane, now) {
            const mark = marks.get(lane);
            if (now !== undefined || !mark)
                return START;
            if (monotonicMs() - mark.since <= AGE_MS_MAX)
                return mark;
            marks.delete(lane);
            return START;
        },
        advance(asked, found) {
            const came = new Map();
            for (const part of found?.split(",") ?? []) {
                const [lane, epoch, id, count] = part.split(" ");
                came.set(Number(lane), [epoch, id, Number(count)]);
            }
            for (const { id: lane, limit } of asked) {
                const last = came.get(lane);
                if (!last || last[2] < limit)
                    marks.delete(lane);
                else {
                    // The age counts from the first claim since the lane was last read from its beginning.
                    const since = marks.get(lane)?.since ?? monotonicMs();
                    marks.set(lane, { due: timestamp(last[0]), id: last[1], since });
                }
            }
        },
    };
}
/** Seconds with microseconds, as text, to a timestamp literal: a JavaScript Date would drop the microseconds. */
function timestamp(epoch) {
    const [seconds, fraction = ""] = epoch.split(".");
    return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}.${fraction.padEnd(6, "0")}Z`;
}
//# sourceMappingURL=watermark.js.map