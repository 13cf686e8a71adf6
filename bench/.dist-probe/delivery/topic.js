/**
 * A topic as code declares it: the definition every worker shares, and what lives only in this process (schema, function,
 * sink). Declaring does nothing by itself; createMakegood stores it and work() delivers it.
 */
import { DEFAULTS } from "../message/limits.js";
import { checkTopic } from "../message/validate-topic.js";
export function topic(name, options = {}) {
    const { sink } = options;
    const handler = typeof sink === "function" ? sink : null;
    const object = sink !== undefined && typeof sink === "object" && "deliver" in sink ? sink : null;
    // What code declares may use private addresses: whoever wrote it could have called them directly.
    const config = sink === undefined || handler || object ? { kind: "function" } : { trusted: true, ...sink };
    const definition = {
        name,
        sink: withDefined(config, { timeoutMs: options.timeoutMs, onUnknown: options.onUnknown }),
        retry: retryConfig(options.retry),
        schemaVersion: options.schemaVersion ?? null,
        leaseMs: options.leaseMs ?? DEFAULTS.leaseMs,
        concurrency: options.concurrency ?? null,
        tenantConcurrency: options.tenantConcurrency ?? null,
        ordering: options.ordering ?? "key",
    };
    checkTopic(definition);
    return Object.freeze({
        name,
        definition,
        schema: options.schema ?? null,
        handler,
        sink: object,
        sendsOnly: sink === undefined,
    });
}
function retryConfig(retry) {
    if (typeof retry === "string")
        return { policy: retry };
    return { ...retry, policy: retry?.policy ?? "exponential" };
}
function withDefined(config, extra) {
    return { ...config, ...Object.fromEntries(Object.entries(extra).filter(([, value]) => value !== undefined)) };
}
//# sourceMappingURL=topic.js.map