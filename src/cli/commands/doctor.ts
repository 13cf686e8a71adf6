/** `makegood doctor`: whether all that a delivery depends on is well; exit code 1 where messages would be lost or stop. */
import { createClient } from "../../contract/http-client.ts";
import { errorText } from "../../message/errors.ts";
import { systemClock } from "../../platform/clock.ts";
import { isLoopbackHost } from "../../server/auth.ts";
import type { Config } from "../../server/config/config.ts";
import { type Health, levelsOf, unservedTopics } from "../../server/health.ts";
import { attestation, homeSchema, storeUrl } from "../../server/open-store.ts";
import { createPostgresStore, examineDirectory, examinePostgres } from "../../store/postgres/index.ts";
import { connectRedis, createRedisStore, examineRedis } from "../../store/redis/index.ts";
import { clockSkew, type Examined, examined } from "../../store/shared/examined.ts";
import type { Store } from "../../store/store.ts";
import { type AddCommand, type CommandContext, unreachable } from "../conversation.ts";
import { EXIT, type ExitCode, type Io, Stop, say, tell } from "../io.ts";
import { refuseNowhere, warnings } from "../local.ts";

export const commands: AddCommand = (program, run) =>
  program
    .command("doctor")
    .description("check the machine, the configuration and the store (or the server of MAKEGOOD_URL)")
    .action(() => run(examine, { asksServer: true }));

async function examine(context: CommandContext): Promise<ExitCode> {
  const { io, config } = context;
  const found = [checkNode(), ...(await checkConfiguration(config))];
  found.push(...(config.url === null ? await checkStore(context) : await checkServer(config.url, config.token)));
  const failed = found.some(({ status }) => status === "fail");
  tell(context, { status: failed ? "fail" : "ok", checks: found }, () => show(io, found));
  return failed ? EXIT.failed : EXIT.ok;
}

function show(io: Io, found: readonly Examined[]): void {
  const width = Math.max(...found.map(({ name }) => name.length));
  for (const { status, name, detail } of found) say(io, `${status.padEnd(4)}  ${name.padEnd(width)}  ${detail}`);
  const count = (wanted: Examined["status"]): number => found.filter(({ status }) => status === wanted).length;
  say(io, "", `${count("ok")} ok, ${count("warn")} to look at, ${count("fail")} failed`);
}

function checkNode(): Examined {
  const version = process.versions.node;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const fits = major > 20 || (major === 20 && minor >= 19);
  return examined("node", fits, `${version}${fits ? "" : ": 20.19 or later is needed"}`);
}

async function checkConfiguration(config: Config): Promise<Examined[]> {
  const bound = isLoopbackHost(config.host) ? "loopback" : config.host;
  const tokens = config.tokens.map(({ name }) => name).join(", ") || `none, and none is needed while bound to ${bound}`;
  const found = [
    examined("config", true, config.config_path ?? "environment only, no config file"),
    examined("tokens", true, tokens),
    examined("sinks", true, ["public addresses", ...config.sink_allow].join(", ")),
  ];
  const embedded = config.store === "postgres" && config.database_url === null && config.url === null;
  return embedded ? [...found, await examineDirectory(config.data_dir)] : found;
}

async function checkServer(url: string, token: string | null): Promise<Examined[]> {
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
    return [...found, ...healthOf(JSON.parse(health.text) as Told)];
  } catch (error) {
    return [examined("server", false, unreachable(url, error))];
  }
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

const SHOWN = 20;

/** It makes nothing: a store that is not there is said to be missing. */
async function checkStore(context: CommandContext): Promise<Examined[]> {
  const { store } = context.config;
  if (store === "memory") return [examined("store", false, "memory: what was accepted is gone when the process ends", "warn")];
  const redis = await checkRedis(context);
  if (store === "redis") return [...redis, ...(await checkHome(context.config))];
  // The second rung: what is wrong with it does not stop delivery.
  const second = redis.map((one) => (one.status === "fail" ? { ...one, status: "warn" as const } : one));
  return [...(await checkPostgres(context)), ...second];
}

async function checkRedis({ config }: CommandContext): Promise<Examined[]> {
  if (config.redis_url === null) return [];
  try {
    const port = await connectRedis(config.redis_url);
    try {
      const found = await examineRedis(port, attestation(config.redis_attest));
      if (config.store !== "redis") return found;
      return [...found, ...(await checkDelivery(createRedisStore({ redis: port, prefix: config.redis_prefix })))];
    } finally {
      await port.close();
    }
  } catch (error) {
    return [examined("redis", false, errorText(error))];
  }
}

/** What is wrong with the home of recovery stops recovery, and no delivery. */
async function checkHome(config: Config): Promise<Examined[]> {
  if (config.database_url === null || config.recovery_options === false) return [];
  const { found } = await examinePostgres(config.database_url, homeSchema(config));
  return found.map((one) => ({ ...one, name: `recovery ${one.name}`, status: one.status === "fail" ? "warn" : one.status }));
}

async function checkPostgres({ io, config, init }: CommandContext): Promise<Examined[]> {
  const undo: (() => Promise<void>)[] = [];
  try {
    if (!init) await refuseNowhere(config);
    const { url, embedded, release } = await storeUrl(config, warnings(io));
    undo.push(release);
    const { found, usable } = await examinePostgres(url, config.schema, embedded ? "embedded" : undefined);
    if (!usable) return [...found];
    const store = createPostgresStore({ url, schema: config.schema, poolMax: 2 });
    undo.push(() => store.close());
    return [...found, ...(await checkDelivery(store))];
  } catch (error) {
    return [examined("store", false, errorText(error), error instanceof Stop ? "warn" : "fail")];
  } finally {
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}

async function checkDelivery(store: Pick<Store, "counts" | "topics">): Promise<Examined[]> {
  try {
    const found = unservedTopics(await levelsOf(store));
    if (found.length === 0) return [examined("delivery", true, "every topic with messages waiting is served")];
    const more = found.length - SHOWN;
    const shown = found.slice(0, SHOWN).map(({ topic, code, reason }) => {
      // Nobody at work may be what is wanted just now; a worker that is there and cannot is not.
      return examined("delivery", false, `${topic} is not served: ${code}: ${reason}`, code === "no_worker" ? "warn" : "fail");
    });
    return more > 0 ? [...shown, examined("delivery", false, `and ${more} more topics are not served`, "warn")] : shown;
  } catch (error) {
    return [examined("delivery", false, `could not be looked at: ${errorText(error)}`, "warn")];
  }
}
