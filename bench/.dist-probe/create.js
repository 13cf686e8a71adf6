/**
 * Wiring: the only file that knows every room. It makes the parts, hands each what it needs of the others as plain objects,
 * starts everything it builds and stops it in the opposite order.
 */
import { createAcceptance } from "./delivery/acceptance.js";
import { createClient } from "./delivery/client.js";
import { startDispatcher } from "./delivery/dispatcher.js";
import { TopicTable } from "./delivery/topic-table.js";
import { pruneSettled } from "./maintenance/jobs/prune-settled.js";
import { reclaimExpired } from "./maintenance/jobs/reclaim-expired.js";
import { startMaintenance } from "./maintenance/maintenance.js";
import { MakegoodError } from "./message/errors.js";
import { DEFAULTS } from "./message/limits.js";
import { RETRY_POLICIES } from "./message/retry-policy.js";
import { issueText } from "./message/standard-schema.js";
import { createEvents } from "./observe/events.js";
import { systemClock } from "./platform/clock.js";
import { createIds } from "./platform/ids.js";
import { systemRandom } from "./platform/random.js";
import { createAddressGuard } from "./sink/address-guard.js";
import { functionSink, reject } from "./sink/function.js";
import { createSink } from "./sink/sinks.js";
export async function createMakegood(options) {
    const { store, clock = systemClock, random = systemRandom } = options;
    checkOptions(options);
    const events = createEvents();
    if (options.onEvent)
        events.on(options.onEvent);
    const ids = createIds(clock, random);
    const declared = new Map((options.topics ?? []).map((topic) => [topic.name, topic]));
    const makeSink = createSinkMaker(options, declared, events, { clock, random });
    await store.open();
    const topics = new TopicTable({ store, clock, events, makeSink });
    try {
        await declareTopics(store, topics, declared, options.topicSource ?? "code");
    }
    catch (error) {
        await topics.close();
        if (!options.sharedStore)
            await store.close();
        throw error;
    }
    const acceptance = createAcceptance({ store, clock, random, events });
    const client = createClient({ store, acceptance, topics, declared, ids, events });
    const maintenance = createMaintenanceSwitch(options, { store, topics, events, ids, clock, random });
    const workers = new Set();
    let closing;
    function work(how = {}) {
        if (closing !== undefined)
            throw new MakegoodError("closed", "this Makegood was closed: make a new one to work");
        const dispatcher = startDispatcher({
            store,
            topics,
            events,
            clock,
            random,
            owner: `worker-${ids()}`,
            patterns: how.topics ?? ["*"],
            concurrency: how.concurrency ?? options.concurrency ?? DEFAULTS.concurrency,
            pollMs: options.pollMs ?? DEFAULTS.pollMs,
            drainMs: options.drainMs ?? DEFAULTS.drainMs,
        });
        const release = maintenance.hold(how.maintenance ?? true);
        const worker = {
            owner: dispatcher.owner,
            status: () => dispatcher.status(),
            stop: async (stop) => {
                await dispatcher.stop(stop);
                await release();
                workers.delete(worker);
            },
            [Symbol.asyncDispose]: () => worker.stop(),
        };
        workers.add(worker);
        return worker;
    }
    async function shutDown(stop) {
        await Promise.all([...workers].map((worker) => worker.stop(stop)));
        await acceptance.close();
        await topics.close();
        await Promise.allSettled([...declared.values()].map(async ({ sink }) => sink?.close?.()));
        if (!options.sharedStore)
            await store.close();
    }
    const close = (stop = {}) => {
        closing ??= shutDown(stop);
        return closing;
    };
    return { ...client, store, events, work, close, [Symbol.asyncDispose]: () => close() };
}
function checkOptions({ concurrency, pollMs, drainMs, keptMs, topics = [] }) {
    const problems = [];
    const atLeast = (name, value, min) => {
        if (value !== undefined && !(Number.isFinite(value) && value >= min))
            problems.push(`${name} must be a number from ${min} on`);
    };
    atLeast("concurrency", concurrency, 1);
    atLeast("pollMs", pollMs, 10);
    atLeast("drainMs", drainMs, 0);
    atLeast("keptMs", keptMs, 0);
    const names = topics.map(({ name }) => name);
    for (const name of new Set(names.filter((name, i) => names.indexOf(name) !== i)))
        problems.push(`topic ${name} is declared twice`);
    if (problems.length > 0)
        throw new MakegoodError("invalid_config", problems.join("; "), { problems });
}
async function declareTopics(store, table, declared, source) {
    for (const { name, definition, sendsOnly } of declared.values()) {
        const stored = sendsOnly ? await store.topics.get(name) : null;
        const record = stored ?? (await store.topics.put(definition, source));
        if (record !== "read_only")
            table.learn(record);
    }
}
/** A topic's sink in this process: the caller's choice, the declared object or function, else what the record describes. */
function createSinkMaker(options, declared, events, { clock, random }) {
    const guard = createAddressGuard({ allow: options.sinkAllow });
    const log = options.log ?? ((line) => events.emit({ type: "lifecycle", what: "notice", detail: { line } }));
    return (record) => {
        const chosen = options.sinkFor?.(record);
        if (chosen !== undefined)
            return chosen;
        const topic = declared.get(record.name);
        if (topic?.sink)
            return lent(topic.sink);
        if (topic?.handler)
            return handlerSink(topic);
        return record.sink.kind === "function" ? null : createSink(record.sink, { guard, clock, random, log });
    };
}
/** A sink that was handed in outlives changes of its topic: it is closed once, at the end. */
function lent(sink) {
    const { kind } = sink;
    const deliver = (delivery, context) => sink.deliver(delivery, context);
    return sink.probe ? { kind, deliver, probe: sink.probe.bind(sink) } : { kind, deliver };
}
/** The handler gets what the schema makes of the payload; a payload that no longer fits will never fit. */
function handlerSink({ schema, handler }) {
    if (!handler)
        throw new MakegoodError("invalid_topic", "a function sink needs its function");
    if (!schema)
        return functionSink(handler);
    const { validate } = schema["~standard"];
    return functionSink((value, delivery, context) => {
        const run = (result) => {
            if (!result.issues)
                return handler(result.value, delivery, context);
            const issues = result.issues.map(issueText).map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
            return reject(`the payload does not fit the schema: ${issues.join("; ")}`, { code: "payload_rejected_by_schema" });
        };
        const result = validate(value);
        return result instanceof Promise ? result.then(run) : run(result);
    });
}
/** Maintenance runs while at least one worker does; taking lost leases back belongs to every worker, retention may be declined. */
function createMaintenanceSwitch({ keptMs, pollMs }, parts) {
    const { store, events, clock, random } = parts;
    const owner = `maintenance-${parts.ids()}`;
    const fallback = { policy: RETRY_POLICIES.get("exponential"), ordering: "key", onUnknown: "retry" };
    const rulesOf = (topic) => parts.topics.entry(topic)?.rules ?? fallback;
    // A lost message comes back within its lease and this long.
    const everyMs = Math.min(5_000, Math.max(1_000, pollMs ?? DEFAULTS.pollMs));
    const reclaim = reclaimExpired({ store, owner, random, events, rulesOf, everyMs });
    const prune = pruneSettled({ store, events, keptMs: keptMs ?? DEFAULTS.deliveredKeptMs });
    const sets = [{ jobs: [reclaim] }, { jobs: [prune] }].map(({ jobs }) => ({
        jobs,
        holders: 0,
        running: null,
    }));
    return {
        /** Returns how to let go of it again. */
        hold(all) {
            const held = all ? sets : sets.slice(0, 1);
            for (const set of held) {
                set.holders++;
                set.running ??= startMaintenance({ store, owner, clock, random, events, jobs: set.jobs });
            }
            return async () => {
                for (const set of held.splice(0)) {
                    set.holders--;
                    if (set.holders > 0)
                        continue;
                    const { running } = set;
                    set.running = null;
                    await running?.stop();
                }
            };
        },
    };
}
//# sourceMappingURL=create.js.map