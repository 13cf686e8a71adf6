/**
 * The doctor's look at a running server, over HTTP: alive, ready, healthy, and its clock.
 */
import { errorText } from "../../message/errors.ts";
import { systemClock } from "../../platform/clock.ts";
import { clockSkew, type Finding, finding } from "./finding.ts";

export async function checkServer(url: string, token: string | null): Promise<Finding[]> {
  const base = url.replace(/\/$/, "");
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  const get = (path: string): Promise<Response> => fetch(base + path, { headers, redirect: "error" });
  try {
    const live = await get("/livez");
    const date = Date.parse(live.headers.get("date") ?? "");
    const found = [finding("server", live.ok ? "ok" : "fail", `${base} answers ${live.status}`)];
    // The Date header has whole seconds.
    if (!Number.isNaN(date)) found.push(clockSkew(date + 500, systemClock.wallMs(), 1_000));
    const ready = await get("/readyz?verbose");
    found.push(finding("ready", ready.ok ? "ok" : "fail", (await ready.text()).trim().replaceAll("\n", ", ").slice(0, 500)));
    return [...found, ...(await health(await get("/health")))];
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return [finding("server", "fail", `cannot reach ${base}: ${errorText(cause)}`)];
  }
}

const STATUS = { healthy: "ok", degraded: "warn", unhealthy: "fail" } as const;

const SEVERITY: Readonly<Record<string, Finding["status"]>> = { unhealthy: "fail", degraded: "warn", note: "ok" };

async function health(response: Response): Promise<Finding[]> {
  if (response.status === 401) return [finding("health", "fail", "a token is needed: set MAKEGOOD_TOKEN")];
  const summary = (await response.json()) as {
    status: keyof typeof STATUS;
    reasons: string[];
    version: string;
    store?: { name: string; survives: string };
    findings?: { what: string; topic: string | null; reason: string; since: string | null; severity: string }[];
  };
  const { status, reasons, version, store, findings = [] } = summary;
  return [
    finding("health", STATUS[status] ?? "fail", [status, ...reasons].join("; ")),
    ...findings.map(({ what, topic, reason, since, severity }) => {
      const where = [topic, since && `since ${since}`].filter((one) => one).join(", ");
      return finding(what, SEVERITY[severity] ?? "warn", where === "" ? reason : `${reason} (${where})`);
    }),
    finding("version", "ok", version),
    finding("durability", store?.survives === "power-loss" ? "ok" : "warn", `${store?.name} survives ${store?.survives}`),
  ];
}
