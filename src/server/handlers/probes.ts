/**
 * The addresses that machines look at: /livez says the process runs, /readyz that it can accept, /health how everything
 * stands, /metrics the numbers.
 */
import { openApiDocument } from "../../contract/openapi.ts";
import type { Health } from "../health.ts";
import { json } from "../http.ts";
import { problem, type Reply } from "../problem.ts";
import { VERSION } from "../version.ts";
import type { Handlers } from "./handlers.ts";

function text(body: string, type = "text/plain; charset=utf-8"): Reply {
  return { status: 200, headers: { "content-type": type }, body };
}

export function probeHandlers(health: Health, base = ""): Handlers<"live" | "ready" | "health" | "metrics" | "openApi"> {
  return {
    live: () => text("ok\n"),
    async ready({ query }) {
      const checks = await health.ready();
      const bad = checks.filter((check) => !check.ok);
      if (bad.length > 0) {
        // Anyone may ask: where the database is stays with those who have a token, in /health.
        const shown = checks.map((check) => ({ ...check, detail: check.detail && withoutAddresses(check.detail) }));
        const detail = shown.flatMap((check) => (check.ok ? [] : [`${check.name}: ${check.detail}`])).join("; ");
        return problem("not_ready", detail, { members: { checks: shown } });
      }
      if (query.verbose === undefined) return text("ok\n");
      const lines = checks.map(({ name, detail }) => `[+] ${name} ok${detail === null ? "" : `: ${detail}`}\n`);
      return text(`${lines.join("")}ready\n`);
    },
    async health() {
      const summary = await health.summary();
      return json(summary.status === "unhealthy" ? 503 : 200, summary);
    },
    openApi: () => json(200, { ...openApiDocument(VERSION), servers: [{ url: base || "/" }] }),
    metrics: async () => text(await health.metrics.text(), health.metrics.contentType),
  };
}

/** URLs, sockets, addresses with and without a port, names with dots, and the name that could not be looked up. */
const ADDRESSES = [
  /\b[a-z]+:\/\/\S+/gi,
  /(?<=\b(?:ENOTFOUND|EAI_AGAIN)\s)\S+/g,
  /(?<![\w.])\/[\w.-]+(?:\/[\w.-]+)+/g,
  /\[?[0-9a-f]*(?::[0-9a-f]*){2,}\]?(?::\d+)?/gi,
  /\b[\w-]+(?:\.[\w-]+)+(?::\d+)?\b|\b[\w-]+:\d{2,5}\b/g,
];

export function withoutAddresses(text: string): string {
  return ADDRESSES.reduce((left, address) => left.replace(address, "its address"), text);
}
