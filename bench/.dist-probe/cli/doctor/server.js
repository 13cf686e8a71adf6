/**
 * The doctor's look at a running server, over HTTP: alive, ready, healthy, and its clock.
 */
import { errorText } from "../../message/errors.js";
import { systemClock } from "../../platform/clock.js";
import { clockSkew, finding } from "./finding.js";
export async function checkServer(url, token) {
    const base = url.replace(/\/$/, "");
    const headers = token === null ? {} : { authorization: `Bearer ${token}` };
    const get = (path) => fetch(base + path, { headers, redirect: "error" });
    try {
        const live = await get("/livez");
        const date = Date.parse(live.headers.get("date") ?? "");
        const found = [finding("server", live.ok ? "ok" : "fail", `${base} answers ${live.status}`)];
        // The Date header has whole seconds.
        if (!Number.isNaN(date))
            found.push(clockSkew(date + 500, systemClock.wallMs(), 1_000));
        const ready = await get("/readyz?verbose");
        found.push(finding("ready", ready.ok ? "ok" : "fail", (await ready.text()).trim().replaceAll("\n", ", ").slice(0, 500)));
        return [...found, ...(await health(await get("/health")))];
    }
    catch (error) {
        const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
        return [finding("server", "fail", `cannot reach ${base}: ${errorText(cause)}`)];
    }
}
const STATUS = { healthy: "ok", degraded: "warn", unhealthy: "fail" };
async function health(response) {
    if (response.status === 401)
        return [finding("health", "fail", "a token is needed: set MAKEGOOD_TOKEN")];
    const summary = (await response.json());
    const { status, reasons, version, store } = summary;
    return [
        finding("health", STATUS[status] ?? "fail", [status, ...reasons].join("; ")),
        finding("version", "ok", version),
        finding("durability", store?.survives === "power-loss" ? "ok" : "warn", `${store?.name} survives ${store?.survives}`),
    ];
}
//# sourceMappingURL=server.js.map