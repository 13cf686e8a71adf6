/** A server that runs, as it can be asked: whether it lives, is ready and well, and lets itself be measured. */
import { type Client, createClient } from "../contract/http-client.ts";
import { errorText } from "../message/errors.ts";
import { systemClock } from "../platform/clock.ts";
import type { Health } from "../server/health.ts";
import { clockSkew, type Examined, examined } from "../store/shared/examined.ts";

const clientOf = (url: string, token: string | null): Client => createClient({ url, token: token ?? undefined, triesMax: 1 });

/** What fetch throws says little, its cause says why. */
export function unreachable(url: string, error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return `cannot reach ${url}: ${errorText(cause)}: is \`makegood serve\` running there?`;
}

/** The one question of a container's health check: whether the process answers. */
export async function examineLife(url: string): Promise<Examined[]> {
  try {
    const { status } = await clientOf(url, null).raw("live");
    // It answers, also when it is not asked by a name of its own.
    return [examined("live", status < 500, `${url} answers ${status}`)];
  } catch (error) {
    return [examined("live", false, unreachable(url, error))];
  }
}

export async function examineServer(url: string, token: string | null): Promise<Examined[]> {
  const client = clientOf(url, token);
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
    const metrics = await client.raw("metrics");
    const measured = metrics.status < 400 && /^makegood_info\{/m.test(metrics.text);
    found.push(
      examined(
        "metrics",
        measured,
        measured ? `${url}/metrics is there to be scraped` : `/metrics answers ${metrics.status}`,
        "warn",
      ),
    );
    found.push(...(await operations(client, metrics.text)));
    return [...found, ...healthOf(JSON.parse(health.text) as Told)];
  } catch (error) {
    return [examined("server", false, unreachable(url, error))];
  }
}

/** Jobs and conservation; a server of an earlier version has neither address. */
async function operations(client: Client, metrics: string): Promise<Examined[]> {
  const listed = await client.raw("listJobs");
  const verify = await client.raw("showConservation");
  const found: Examined[] = [];
  if (listed.status < 400) found.push(upkeepOf((JSON.parse(listed.text) as { data: { name: string }[] }).data, metrics));
  if (verify.status < 400) found.push(conservationOf(JSON.parse(verify.text) as { state: string; reason: string | null }));
  return found;
}

/** What runs by itself has no timer of its own: it is a job of the server, and its runs are counted. */
function upkeepOf(upkeep: readonly { readonly name: string }[], metrics: string): Examined {
  const ran = (name: string, result: string) => {
    const line = new RegExp(`^makegood_job_runs_total\\{job_name="${name}",result="${result}"\\} ([0-9]+)`, "m").exec(metrics);
    return Number(line?.[1] ?? 0);
  };
  const failed = upkeep.filter(({ name }) => ran(name, "failed") > 0 && ran(name, "done") === 0).map(({ name }) => name);
  if (upkeep.length === 0) return examined("jobs", false, "no job runs by itself here");
  const words = `${failed.join(", ")} only fail: see the log, and \`makegood jobs run\``;
  return examined("jobs", failed.length === 0, failed.length === 0 ? `${upkeep.length} run by themselves` : words);
}

function conservationOf({ state, reason }: { readonly state: string; readonly reason: string | null }): Examined {
  const detail =
    state === "whole" ? "everything that was accepted is accounted for" : `${state}: ${reason ?? "see `makegood verify`"}`;
  return examined("conservation", state === "whole", detail, state === "unknown" ? "warn" : "fail");
}

type Summary = Awaited<ReturnType<Health["summary"]>>;
/** A server of an earlier version may not say all of it. */
type Told = Pick<Summary, "status" | "reasons" | "version"> & Partial<Summary>;

function healthOf({ status, reasons, version, store, findings = [] }: Told): Examined[] {
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
