/**
 * Writes outcomes in batches: together when a burst is over, at once when nothing else runs, and after a few milliseconds
 * otherwise. A store that fails is tried again for as long as the lease lives; a message that makes a whole batch fail
 * is singled out. `lost` changes nothing but an event (I4).
 */
import { errorText, isMakegoodError } from "../message/errors.js";
import { LIMITS } from "../message/limits.js";
import { sleep } from "../platform/clock.js";
const BATCH_GOOD = 500;
const BATCH_MAX = LIMITS.batchMessagesMax;
const WAIT_MS = 5;
const WRITES_MAX = 2;
const BACKOFF_MS = 50;
const BACKOFF_MS_MAX = 5_000;
export class Settler {
    #options;
    #writes = new Set();
    #giveUp = new AbortController();
    #pending = [];
    #inWrites = 0;
    #timer;
    #failures = 0;
    constructor(options) {
        this.#options = options;
    }
    /** Outcomes that are not written yet. */
    get backlog() {
        return this.#pending.length + this.#inWrites;
    }
    /** Failed writes in a row. */
    get failures() {
        return this.#failures;
    }
    add(attempt, settlement, durationMs) {
        const { id, claim, attempt: number } = attempt.message;
        attempt.settle = { id, claim, attempt: number, durationMs, settlement: writable(settlement) };
        this.#pending.push(attempt);
        if (this.#pending.length >= BATCH_MAX)
            this.#flush(false);
    }
    /** After a burst of outcomes. `last`: nothing runs any more that could join them. */
    consider(last) {
        if (this.#pending.length === 0)
            return;
        if (last || this.#pending.length >= BATCH_GOOD)
            this.#flush(true);
        else
            this.#timer ??= this.#options.clock.after(WAIT_MS, () => this.#flush(true));
    }
    /** Writes everything and waits for it, but not longer than `ms`: what is left comes back when its lease ends. */
    async close(ms) {
        const deadline = this.#options.clock.after(ms, () => this.#giveUp.abort());
        while (this.backlog > 0 && !this.#giveUp.signal.aborted) {
            this.#flush(true);
            await Promise.race([Promise.all(this.#writes), sleep(this.#options.clock, ms, this.#giveUp.signal)]);
        }
        deadline.cancel();
        this.#giveUp.abort();
        this.#timer?.cancel();
    }
    #flush(all) {
        this.#timer?.cancel();
        this.#timer = undefined;
        while (this.#writes.size < WRITES_MAX && this.#pending.length >= (all ? 1 : BATCH_MAX)) {
            const batch = this.#pending.length <= BATCH_MAX ? this.#pending : this.#pending.slice(0, BATCH_MAX);
            this.#pending = this.#pending.length <= BATCH_MAX ? [] : this.#pending.slice(BATCH_MAX);
            this.#inWrites += batch.length;
            const write = this.#write(batch).finally(() => {
                this.#writes.delete(write);
                this.#inWrites -= batch.length;
                if (this.#pending.length > 0)
                    this.#flush(true);
                this.#options.room();
            });
            this.#writes.add(write);
        }
    }
    async #write(batch) {
        const settles = batch.map(({ settle }) => settle);
        for (let failed = 1;; failed++) {
            try {
                const results = await this.#options.store.settle(settles);
                this.#failures = 0;
                this.#report(batch, results);
                return;
            }
            catch (error) {
                this.#failures++;
                this.#options.events.emit({
                    type: "store_error",
                    during: "settle",
                    error: errorText(error),
                    consecutive: this.#failures,
                });
                if (!mayTryAgain(error) && (await this.#split(batch)))
                    return;
                if (this.#hopeless(batch, error)) {
                    this.#report(batch, []);
                    return;
                }
                const backoffMs = Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** Math.min(failed, 10));
                await sleep(this.#options.clock, backoffMs * (0.5 + this.#options.random.next() / 2), this.#giveUp.signal);
            }
        }
    }
    /** One message that cannot be written must not keep its batch from being written. */
    async #split(batch) {
        if (batch.length < 2)
            return false;
        const half = batch.length >> 1;
        await this.#write(batch.slice(0, half));
        await this.#write(batch.slice(half));
        return true;
    }
    /** With every lease run out somebody else owns the messages, and writing again could only be told `lost`. */
    #hopeless(batch, error) {
        const nowMs = this.#options.clock.monotonicMs();
        return !mayTryAgain(error) || this.#giveUp.signal.aborted || batch.every(({ lease }) => nowMs > lease.untilMs);
    }
    #report(batch, results) {
        const { settled } = this.#options;
        for (let i = 0; i < batch.length; i++) {
            settled(batch[i], results[i] ?? "lost");
        }
    }
}
/** An error of another kind than ours is taken for the message's fault, unless it is alone. */
function mayTryAgain(error) {
    return isMakegoodError(error) && error.retryable;
}
// PostgreSQL has no NUL in a text, and an error may quote anything a receiver said.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g;
/** Error texts within their limit and without what a store cannot keep. */
function writable(settlement) {
    if (settlement.kind === "delivered" || settlement.kind === "release" || settlement.error === null)
        return settlement;
    const error = settlement.error.slice(0, LIMITS.errorBytesMax).replace(UNWRITABLE, "\ufffd");
    const bytes = Buffer.from(error);
    const fits = bytes.length <= LIMITS.errorBytesMax;
    return { ...settlement, error: fits ? bytes.toString() : bytes.subarray(0, LIMITS.errorBytesMax - 3).toString() };
}
//# sourceMappingURL=settler.js.map