import { Pool } from "undici";
import { LIMITS } from "../message/limits.js";
import { systemClock } from "../platform/clock.js";
import { createAddressGuard, guardedConnector } from "./address-guard.js";
import { checkUrl } from "./check-target.js";
import { exchange } from "./exchange.js";
import { oneLine } from "./one-line.js";
import { fixedHeaders } from "./request-headers.js";
const CONNECT_TIMEOUT_MS = 10_000;
const CONNECTIONS_MAX = 256;
const SNIPPET_BYTES = 1_000;
export function createPoster(options, deps = {}) {
    const clock = deps.clock ?? systemClock;
    const anyone = deps.guard ?? createAddressGuard();
    const guard = options.trusted === true ? anyone.trusting : anyone;
    // Decided again here and not only when it was saved: the guard's configuration may have changed since.
    const refusal = checkUrl(options.url, guard);
    if (refusal !== null)
        return refusingPoster(refusal);
    const url = new URL(options.url);
    const fixed = fixedHeaders(options.headers);
    const secrets = secretsIn(options.headers);
    const pool = new Pool(url.origin, {
        connect: guardedConnector(guard, {
            connectTimeoutMs: Math.min(options.timeoutMs ?? CONNECT_TIMEOUT_MS, CONNECT_TIMEOUT_MS),
            tls: options.tls,
        }),
        connections: options.connectionsMax ?? CONNECTIONS_MAX,
        pipelining: 1,
        maxHeaderSize: LIMITS.responseBytesMax,
        keepAliveMaxTimeout: 60_000,
        // A connection that never ends would keep an address that the name left long ago.
        maxRequestsPerClient: 1_000,
    });
    const request = { origin: url.origin, path: url.pathname + url.search, method: "POST" };
    let running = 0;
    let closed;
    let idle = () => undefined;
    return {
        async post(body, headers, context) {
            if (closed !== undefined)
                return failed({ kind: "retry", code: "sink_closed", error: "the sink is closed" });
            const timeoutMs = Math.min(options.timeoutMs ?? context.timeoutMs, context.timeoutMs);
            running++;
            const answer = await exchange(pool, { ...request, headers: [...fixed, ...headers], body }, context, timeoutMs, clock);
            if (--running === 0)
                idle();
            return answer.kind === "failed" ? answer : { ...answer, body: shown(answer.body, secrets) };
        },
        /** Attempts under way end by themselves, each within its own deadline; nothing else is waited for. */
        close() {
            closed ??= new Promise((resolve) => {
                idle = resolve;
                if (running === 0)
                    resolve();
            }).then(() => pool.destroy());
            return closed;
        },
    };
}
function failed(outcome) {
    return { kind: "failed", outcome };
}
function refusingPoster(reason) {
    const answer = failed({ kind: "reject", code: "address_refused", error: reason });
    return { post: () => Promise.resolve(answer), close: () => Promise.resolve() };
}
/** Receivers echo what they were sent; our credentials must not reach the error column that way. */
function secretsIn(headers = {}) {
    return Object.entries(headers)
        .filter(([name]) => !/^(?:content-type|user-agent|accept)$/i.test(name))
        .flatMap(([, value]) => value.split(/[\s,;]+/))
        .filter((part) => part.length >= 8);
}
function shown(body, secrets) {
    let text = body;
    for (const secret of secrets)
        text = text.replaceAll(secret, "[redacted]");
    return oneLine(text.trim(), SNIPPET_BYTES);
}
//# sourceMappingURL=poster.js.map