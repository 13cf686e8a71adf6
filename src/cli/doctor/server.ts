/**
 * The doctor's look at a running server, over HTTP: alive, ready, healthy, and its clock.
 */
import { createClient } from "../../contract/http-client.ts";
import { errorText } from "../../message/errors.ts";
import { systemClock } from "../../platform/clock.ts";
import { clockSkew, type Examined, examined } from "../../store/shared/examined.ts";

export async function checkServer(url: string, token: string | null): Promise<Examined[]> {
  const client = createClient({ url, token: token ?? undefined, triesMax: 1 });
  try {
    const live = await client.raw("live");
    const found = [examined("server", live.status < 400, `${url} answers ${live.status}`)];
    const date = Date.parse(live.headers.get("date") ?? "");
    // The Date header has whole seconds.
    if (!Number.isNaN(date)) found.push(clockSkew(date + 500, systemClock.wallMs(), 1_000));
    const ready = await client.raw("ready", { verbose: "" });
    found.push(examined("ready", ready.status < 400, ready.text.trim().replaceAll("\n", ", ").slice(0, 500)));
    const health = await client.raw("health");
    if (health.status === 401) return [...found, examined("health", false, "a token is needed: set MAKEGOOD_TOKEN")];
    return [...found, ...healthOf(JSON.parse(health.text) as Health)];
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return [examined("server", false, `cannot reach ${url}: ${errorText(cause)}: is \`makegood serve\` running there?`)];
  }
}

interface Health {
  readonly status: "healthy" | "degraded" | "unhealthy";
  readonly reasons: readonly string[];
  readonly version: string;
  readonly store?: { readonly name: string; readonly survives: string };
  readonly findings?: readonly { what: string; topic: string | null; reason: string; since: string | null; severity: string }[];
}

function healthOf({ status, reasons, version, store, findings = [] }: Health): Examined[] {
  const durable = store?.survives === "power-loss";
  return [
    examined("health", status === "healthy", [status, ...reasons].join("; "), status === "degraded" ? "warn" : "fail"),
    ...findings.map(({ what, topic, reason, since, severity }) => {
      const where = [topic, since && `since ${since}`].filter((one) => one).join(", ");
      const detail = where === "" ? reason : `${reason} (${where})`;
      return examined(what, severity === "note", detail, severity === "unhealthy" ? "fail" : "warn");
    }),
    examined("version", true, version),
    examined("durability", durable, `${store?.name} survives ${store?.survives}`, "warn"),
  ];
}
