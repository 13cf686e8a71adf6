import { json } from "./http.js";
import { problem } from "./problem.js";
const NO_STORE = { "cache-control": "no-store" };
function text(status, body, type = "text/plain; charset=utf-8") {
    return { status, headers: { "content-type": type, ...NO_STORE }, body };
}
export function probeHandlers(health, metrics) {
    return {
        livez: () => text(200, "ok\n"),
        async readyz(request) {
            const checks = await health.ready();
            const bad = checks.filter((check) => !check.ok);
            if (bad.length > 0) {
                const detail = bad.map((check) => `${check.name}: ${check.detail}`).join("; ");
                return problem("not_ready", detail, { members: { checks }, headers: NO_STORE });
            }
            if (!request.query.has("verbose"))
                return text(200, "ok\n");
            return text(200, `${checks.map((check) => `[+] ${check.name} ok`).join("\n")}\nready\n`);
        },
        async health() {
            const summary = await health.summary();
            return json(summary.status === "unhealthy" ? 503 : 200, summary, NO_STORE);
        },
        metrics: async () => text(200, await metrics.text(), metrics.contentType),
    };
}
//# sourceMappingURL=handlers-probes.js.map