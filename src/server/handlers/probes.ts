/**
 * The addresses that machines look at: /livez says the process runs, /readyz that it can accept, /health how everything
 * stands, /metrics the numbers.
 */
import { openApiDocument } from "../../contract/openapi.ts";
import { json, type Reply, refused } from "../http.ts";
import { VERSION } from "../version.ts";
import type { Handlers } from "./handlers.ts";

function text(body: string, type = "text/plain; charset=utf-8"): Reply {
  return { status: 200, headers: { "content-type": type }, body };
}

export const PROBES: Handlers<"live" | "ready" | "health" | "metrics" | "openApi"> = {
  live: () => text("ok\n"),
  async ready({ query }, _, health) {
    const checks = await health.ready();
    if (checks.some((check) => !check.ok)) {
      // Anyone may ask: where the database is stays with those who have a token, in /health.
      const shown = checks.map((check) => ({ ...check, detail: check.detail && withoutAddresses(check.detail) }));
      const detail = shown.flatMap((check) => (check.ok ? [] : [`${check.name}: ${check.detail}`])).join("; ");
      throw refused("not_ready", detail, { members: { checks: shown } });
    }
    const lines = checks.map(({ name, detail }) => `[+] ${name} ok${detail === null ? "" : `: ${detail}`}\n`);
    return text(query.verbose === undefined ? "ok\n" : `${lines.join("")}ready\n`);
  },
  async health(_, __, health) {
    const summary = await health.summary();
    return json(summary.status === "unhealthy" ? 503 : 200, summary);
  },
  openApi: (_, { basePath }) => json(200, { ...openApiDocument(VERSION), servers: [{ url: basePath || "/" }] }),
  metrics: async (_, __, { metrics }) => text(await metrics.text(), metrics.contentType),
};

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
