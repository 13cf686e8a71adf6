/**
 * From messages to accepted ones: one store call, tried again with the same ids when its COMMIT is in doubt, so that the
 * result is one row whatever was lost on the way. Single messages of concurrent callers share a call, each still waiting for
 * its own commit.
 */
import { errorText, isMakegoodError, MakegoodError } from "../message/errors.js";
import { LIMITS } from "../message/limits.js";
import { sleep } from "../platform/clock.js";
const TRIES_MAX = 6;
const TRY_WAIT_MS = 50;
/** Two calls overlap: one is being written while the other gathers; more would only make smaller groups. */
const GROUPS_MAX = 2;
export function createAcceptance({ store, clock, random, events }) {
    const closing = new AbortController();
    const underWay = new Set();
    let gathered = [];
    let groups = 0;
    let planned = false;
    async function write(messages, atomic, signal) {
        for (let failed = 0;; failed++) {
            signal?.throwIfAborted();
            try {
                const results = await store.enqueue(messages, { atomic });
                return failed === 0 ? results : results.map((result, i) => ownRow(result, messages[i]));
            }
            catch (error) {
                if (!mayTryAgain(error) || failed + 1 >= TRIES_MAX || closing.signal.aborted)
                    throw error;
                events.emit({ type: "store_error", during: "enqueue", error: errorText(error), consecutive: failed + 1 });
                await sleep(clock, TRY_WAIT_MS * 2 ** failed * (0.5 + random.next() / 2), signal ?? closing.signal);
            }
        }
    }
    /** Strangers share the call: an error that one of them caused must not reach the others, so a refused group is halved. */
    async function writeGroup(group) {
        try {
            const messages = group.map(({ message }) => message);
            const results = await write(messages, "each");
            group.forEach((waiting, i) => {
                waiting.resolve(results[i]);
            });
        }
        catch (error) {
            if (group.length === 1 || mayTryAgain(error)) {
                for (const waiting of group)
                    waiting.reject(error);
                return;
            }
            const half = group.length >> 1;
            await writeGroup(group.slice(0, half));
            await writeGroup(group.slice(half));
        }
    }
    function flush() {
        planned = false;
        while (gathered.length > 0 && groups < GROUPS_MAX) {
            const group = takeGroup();
            if (group.length === 0)
                continue;
            groups++;
            void track(writeGroup(group).finally(() => {
                groups--;
                plan();
            }));
        }
    }
    function takeGroup() {
        let bytes = 0;
        let count = 0;
        while (count < gathered.length && count < LIMITS.batchMessagesMax) {
            bytes += gathered[count].message.payload.length;
            if (count > 0 && bytes > LIMITS.claimBytesMax / 4)
                break;
            count++;
        }
        const group = gathered.slice(0, count);
        gathered = gathered.slice(count);
        return group.filter(({ signal, reject }) => {
            if (signal?.aborted)
                reject(signal.reason);
            return !signal?.aborted;
        });
    }
    /** A microtask later, so that callers who were resumed together go together. */
    function plan() {
        if (planned || gathered.length === 0 || groups >= GROUPS_MAX)
            return;
        planned = true;
        queueMicrotask(flush);
    }
    function track(promise) {
        underWay.add(promise);
        const done = () => void underWay.delete(promise);
        promise.then(done, done);
        return promise;
    }
    const refuseIfClosed = () => {
        if (closing.signal.aborted)
            throw new MakegoodError("closed", "this Makegood was closed and accepts nothing more");
    };
    return {
        async acceptAll(messages, tx, signal) {
            refuseIfClosed();
            // Inside the caller's transaction a failed statement has already undone it: only the caller can try again.
            return tx ? track(store.enqueue(messages, { tx, atomic: "all" })) : track(write(messages, "all", signal));
        },
        async acceptOne(message, signal) {
            refuseIfClosed();
            signal?.throwIfAborted();
            return new Promise((resolve, reject) => {
                gathered.push({ message, signal, resolve, reject });
                plan();
            });
        },
        async close() {
            closing.abort();
            while (gathered.length > 0 || underWay.size > 0) {
                plan();
                await Promise.allSettled([...underWay, Promise.resolve()]);
            }
        },
    };
}
/** A row that carries this call's own id was written by this call, in a try whose answer was lost. */
function ownRow(result, message) {
    return result.kind === "duplicate" && result.id === message.id ? { kind: "accepted", id: result.id } : result;
}
function mayTryAgain(error) {
    if (!isMakegoodError(error))
        return false;
    return error.code === "outcome_unknown" || error.code === "store_unavailable" || error.code === "retry_transaction";
}
//# sourceMappingURL=acceptance.js.map