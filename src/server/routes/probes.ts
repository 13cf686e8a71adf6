/**
 * The addresses that machines look at: /livez says the process runs, /readyz that it can accept, /health how everything
 * stands, /metrics the numbers.
 */
import type { Metrics } from "../../observe/metrics.ts";
import { problem, type Reply } from "../contract/problem.ts";
import type { Health } from "../health.ts";
import { type Handler, json } from "../http.ts";

const NO_STORE = { "cache-control": "no-store" } as const;

function text(status: number, body: string, type = "text/plain; charset=utf-8"): Reply {
  return { status, headers: { "content-type": type, ...NO_STORE }, body };
}

export interface ProbeHandlers {
  readonly livez: Handler;
  readonly readyz: Handler;
  readonly health: Handler;
  readonly metrics: Handler;
}

export function probeHandlers(health: Health, metrics: Metrics): ProbeHandlers {
  return {
    livez: () => text(200, "ok\n"),
    async readyz(request) {
      const checks = await health.ready();
      const bad = checks.filter((check) => !check.ok);
      if (bad.length > 0) {
        const detail = bad.map((check) => `${check.name}: ${check.detail}`).join("; ");
        return problem("not_ready", detail, { members: { checks }, headers: NO_STORE });
      }
      if (!request.query.has("verbose")) return text(200, "ok\n");
      return text(
        200,
        `${checks.map(({ name, detail }) => `[+] ${name} ok${detail === null ? "" : `: ${detail}`}`).join("\n")}\nready\n`,
      );
    },
    async health() {
      const summary = await health.summary();
      return json(summary.status === "unhealthy" ? 503 : 200, summary, NO_STORE);
    },
    metrics: async () => text(200, await metrics.text(), metrics.contentType),
  };
}
