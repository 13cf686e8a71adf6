const FLUSHES_MAX = 2;
const BATCH_MAX = 500;
export function createCoalescer(insert, told) {
    let waiting = [];
    let flying = 0;
    let scheduled = false;
    /** Takes what may go together: a key that is in the batch already waits for the next one. */
    function take() {
        const keys = new Set();
        const batch = [];
        const rest = [];
        for (const entry of waiting) {
            const { message, lane } = entry.placed;
            const name = message.key === null ? message.id : `${lane.topicId}\u0000${lane.tenant}\u0000${message.key}`;
            if (batch.length >= BATCH_MAX || keys.has(name))
                rest.push(entry);
            else {
                keys.add(name);
                batch.push(entry);
            }
        }
        waiting = rest;
        return batch;
    }
    async function flush() {
        flying++;
        const batch = take();
        try {
            const accepted = await insert(batch.map((entry) => entry.placed));
            told(batch.map((entry) => entry.placed.lane));
            batch.forEach((entry, i) => {
                entry.resolve(accepted[i]);
            });
        }
        catch (error) {
            await oneByOne(batch, error);
        }
        finally {
            flying--;
            schedule();
        }
    }
    /** A statement fails as a whole: whoever did not cause it must not suffer for it. */
    async function oneByOne(batch, error) {
        if (batch.length === 1 || error.retryable) {
            for (const entry of batch)
                entry.reject(error);
            return;
        }
        for (const entry of batch) {
            await insert([entry.placed]).then(([accepted]) => entry.resolve(accepted), entry.reject);
        }
    }
    function schedule() {
        if (scheduled || flying >= FLUSHES_MAX || waiting.length === 0)
            return;
        scheduled = true;
        // One turn later: callers that were released by the same commit come back together.
        queueMicrotask(() => {
            scheduled = false;
            if (flying < FLUSHES_MAX && waiting.length > 0)
                void flush();
        });
    }
    return (placed) => new Promise((resolve, reject) => {
        waiting.push({ placed, resolve, reject });
        schedule();
    });
}
//# sourceMappingURL=coalesce.js.map