/**
 * One process with everything: the API, the dispatcher and maintenance on one store. It starts in an order in which each
 * part can rely on the ones before it, stops in the opposite one, and never touches signals or the exit code itself.
 */
import { createMakegood } from "../create.js";
import { logEvents } from "../observe/log.js";
import { systemClock } from "../platform/clock.js";
import { createAddressGuard } from "../sink/address-guard.js";
import { checkSink } from "../sink/sinks.js";
import { createApp } from "./app.js";
import { shownConfig } from "./config.js";
import { listen } from "./listen.js";
import { openStore } from "./open-store.js";
import { VERSION } from "./version.js";
export function kernelOf({ config, mg, log, clock, worker, draining }) {
    const guard = createAddressGuard({ allow: config.sink_allow });
    return {
        mg,
        log,
        clock,
        version: VERSION,
        payloadBytesMax: config.payload_bytes_max,
        checkSink: (sink) => checkSink(sink, guard),
        dispatcher: () => worker?.status() ?? null,
        draining,
    };
}
export async function startServer(options) {
    const { config, log, clock = systemClock } = options;
    /** What has been started, to be stopped in the opposite order. */
    const undo = [];
    const unwind = async () => {
        for (const step of undo.splice(0).reverse())
            await step();
    };
    let draining = false;
    try {
        log.info("starting", { version: VERSION, ...shownConfig(config) });
        const store = options.store ?? (await ownStore(options, undo));
        const mg = await createMakegood(makegoodOptions(config, store, log, clock));
        undo.push(() => mg.close({ drainMs: config.drain_ms }));
        logEvents(mg.events, log);
        await declareFileTopics(mg.store, config.topics, log);
        const worker = mg.work();
        const kernel = kernelOf({ config, mg, log, clock, worker, draining: () => draining });
        const hosts = { bound: config.host, names: config.hosts };
        const app = createApp({ kernel, tokens: config.tokens, anonymous: "local", hosts });
        undo.push(async () => app.metrics.close());
        const listening = await startListening(app, options, clock);
        let closing;
        const close = (how = {}) => {
            draining = true;
            closing ??= closeAll(how.drainMs ?? config.drain_ms, { listening, worker, log }).then(unwind);
            return closing;
        };
        return { url: listening.url, port: listening.port, mg, close, [Symbol.asyncDispose]: () => close() };
    }
    catch (error) {
        await unwind().catch((failure) => log.error("could not stop cleanly", { error: failure }));
        throw error;
    }
}
async function ownStore({ config, log, failed }, undo) {
    const moved = () => failed?.("the embedded PostgreSQL came back at another address");
    const opened = await openStore({ config, log, moved });
    undo.push(opened.release);
    return opened.store;
}
/** The settings of a Makegood that a configuration stands for. */
export function makegoodOptions(config, store, log, clock) {
    return {
        store,
        clock,
        concurrency: config.concurrency,
        pollMs: config.poll_ms,
        drainMs: config.drain_ms,
        keptMs: config.kept_days,
        sinkAllow: config.sink_allow,
        log: (line) => log.info(line),
    };
}
function startListening(app, options, clock) {
    const { config, headersTimeoutMs, requestTimeoutMs } = options;
    return listen({ fetch: app.fetch, host: config.host, port: config.port, clock, headersTimeoutMs, requestTimeoutMs });
}
/** The file is the authority for what it names; a topic that it named once and no longer does is left alone, and said so. */
export async function declareFileTopics(store, topics, log) {
    for (const { definition, paused } of topics) {
        const put = await store.topics.put(definition, "file");
        if (put !== "read_only" && paused !== undefined && put.paused !== paused)
            await store.topics.pause(definition.name, paused);
    }
    const named = new Set(topics.map(({ definition }) => definition.name));
    const left = (await store.topics.list()).filter(({ source, name }) => source === "file" && !named.has(name));
    for (const { name } of left)
        log.warn("a topic came from a config file that no longer names it", { topic: name });
}
async function closeAll(drainMs, { listening, worker, log }) {
    log.info("stopping", { drain_ms: drainMs });
    // Both at once: the budget is one, and answers under way may still accept while attempts finish.
    await Promise.all([listening.close(drainMs), worker.stop({ drainMs })]);
}
//# sourceMappingURL=serve.js.map