import { errorText } from "../message/errors.js";
import { RETRY_POLICIES, retryPolicy } from "../message/retry-policy.js";
import { attemptTimeoutMs } from "../message/validate-topic.js";
import { startLoop } from "../platform/loop.js";
const REFRESH_MS = 1_000;
/** With nobody at work the view may be older: only the way in reads it, and the store has the last word there. */
const STALE_MS = 5_000;
export class TopicTable {
    #options;
    #entries = new Map();
    #watchers = new Set();
    #closing = new Set();
    #unsubscribe;
    #loop;
    #current = Promise.resolve();
    #next;
    #refreshedMs = Number.NEGATIVE_INFINITY;
    constructor(options) {
        this.#options = options;
        this.#unsubscribe = options.store.wake((hint) => {
            if (hint.kind === "topics")
                this.#refreshSoon();
        });
    }
    entry(name) {
        return this.#entries.get(name);
    }
    entries() {
        return this.#entries.values();
    }
    /** What is known without asking; asks in the background when that is old. */
    known(name) {
        const entry = this.#entries.get(name);
        if (entry && this.#options.clock.monotonicMs() - this.#refreshedMs > STALE_MS)
            this.#refreshSoon();
        return entry?.record;
    }
    async find(name) {
        const known = this.known(name);
        if (known)
            return known;
        const record = await this.#options.store.topics.get(name);
        if (record)
            this.learn(record);
        return record;
    }
    /** Takes over a record that came from the store by another way than a refresh. */
    learn(record) {
        const nowMs = this.#options.clock.monotonicMs();
        const known = this.#entries.get(record.name);
        if (!known) {
            const rules = this.#rules(record);
            const timeoutMs = attemptTimeoutMs(record.sink, record.leaseMs);
            const { name } = record;
            this.#entries.set(name, { name, record, rules, timeoutMs, seenMs: nowMs, gone: false, handle: undefined });
            return;
        }
        if (JSON.stringify(known.record.sink) !== JSON.stringify(record.sink))
            this.#retire(known);
        if (known.record.revision !== record.revision) {
            known.rules = this.#rules(record);
            known.timeoutMs = attemptTimeoutMs(record.sink, record.leaseMs);
        }
        known.record = record;
        known.seenMs = nowMs;
    }
    /** The sink that serves a topic here, made when it is first needed. */
    sink(entry) {
        if (entry.handle !== undefined)
            return entry.handle;
        entry.handle = null;
        try {
            const sink = this.#options.makeSink(entry.record);
            if (sink)
                entry.handle = { sink, users: 0, retired: false };
        }
        catch (error) {
            const detail = { topic: entry.name, error: errorText(error) };
            this.#options.events.emit({ type: "lifecycle", what: "sink_not_made", detail });
        }
        return entry.handle;
    }
    release(handle) {
        handle.users--;
        if (handle.retired && handle.users === 0)
            this.#close(handle);
    }
    /** Calls back after each refresh; the first watcher starts the clock, the last one stops it. */
    watch(listener) {
        this.#watchers.add(listener);
        this.#loop ??= startLoop({
            clock: this.#options.clock,
            step: async () => {
                await this.refresh();
                return REFRESH_MS;
            },
            failed: (error, consecutive) => {
                this.#options.events.emit({ type: "store_error", during: "topics", error: errorText(error), consecutive });
                return Math.min(5_000, REFRESH_MS * consecutive);
            },
        });
        return () => {
            this.#watchers.delete(listener);
            if (this.#watchers.size > 0 || !this.#loop)
                return;
            void this.#loop.stop();
            this.#loop = undefined;
        };
    }
    /** One at a time; whoever calls during a refresh shares the one that begins after it. */
    refresh() {
        this.#next ??= this.#current.then(() => {
            this.#next = undefined;
            const read = this.#read();
            this.#current = read.catch(() => undefined);
            return read;
        });
        return this.#next;
    }
    async close() {
        this.#unsubscribe();
        await this.#loop?.stop();
        for (const entry of this.#entries.values())
            this.#retire(entry);
        await Promise.allSettled([...this.#closing]);
    }
    async #read() {
        const records = await this.#options.store.topics.list();
        const names = new Set(records.map(({ name }) => name));
        for (const record of records)
            this.learn(record);
        for (const [name, entry] of this.#entries) {
            if (names.has(name))
                continue;
            this.#retire(entry);
            entry.gone = true;
            this.#entries.delete(name);
        }
        this.#refreshedMs = this.#options.clock.monotonicMs();
        for (const watcher of this.#watchers)
            watcher();
    }
    #refreshSoon() {
        this.#refreshedMs = this.#options.clock.monotonicMs();
        this.refresh().catch((error) => {
            this.#options.events.emit({ type: "store_error", during: "topics", error: errorText(error), consecutive: 1 });
        });
    }
    #retire(entry) {
        const handle = entry.handle;
        entry.handle = undefined;
        if (!handle)
            return;
        handle.retired = true;
        if (handle.users === 0)
            this.#close(handle);
    }
    #close(handle) {
        const closed = Promise.resolve(handle.sink.close?.()).catch((error) => {
            this.#options.events.emit({ type: "lifecycle", what: "sink_not_closed", detail: { error: errorText(error) } });
        });
        this.#closing.add(closed);
        void closed.then(() => this.#closing.delete(closed));
    }
    #rules(record) {
        let policy = retryPolicy(record.retry);
        if (!policy) {
            // Stored by a newer version: its messages still have bounded attempts.
            const detail = { topic: record.name, policy: record.retry.policy };
            this.#options.events.emit({ type: "lifecycle", what: "retry_policy_not_known", detail });
            policy = RETRY_POLICIES.get("exponential");
        }
        return { policy, ordering: record.ordering, onUnknown: record.sink.onUnknown ?? "retry" };
    }
}
//# sourceMappingURL=topic-table.js.map