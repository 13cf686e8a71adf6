/**
 * The doctor's look at the store itself: reachable, of a known version, durable, with a pooler or without, its schema in
 * place and room ahead.
 */
import { errorText } from "../../message/errors.ts";
import { createLog } from "../../observe/log.ts";
import { systemClock } from "../../platform/clock.ts";
import { storeUrl } from "../../server/open-store.ts";
import {
  type Connection,
  createConnection,
  createPostgresStore,
  daysAhead,
  migrationStatus,
} from "../../store/postgres/index.ts";
import type { CommandContext } from "../run.ts";
import { checkDelivery } from "./delivery.ts";
import { clockSkew, type Finding, finding } from "./finding.ts";
import { checkRedisStore } from "./redis.ts";

const MAJORS = [14, 15, 16, 17, 18];

export async function checkStore(context: CommandContext): Promise<Finding[]> {
  const { store } = context.config;
  if (store === "memory") return [finding("store", "warn", "memory: what was accepted is gone when the process ends")];
  const redis = await checkRedisStore(context.config);
  if (store === "redis") return redis;
  // The second rung: what is wrong with it does not stop delivery.
  const second = redis.map((one) => (one.status === "fail" ? { ...one, status: "warn" as const } : one));
  return [...(await checkPostgres(context)), ...second];
}

async function checkPostgres({ io, config }: CommandContext): Promise<Finding[]> {
  const log = createLog({ clock: systemClock, format: "text", level: "warn", write: (line) => io.err(line) });
  const undo: (() => Promise<void>)[] = [];
  try {
    const found = await storeUrl({ config, log });
    undo.push(found.release);
    const connection = createConnection({ url: found.url, poolMax: 2 });
    undo.push(() => connection.close());
    const beganMs = systemClock.monotonicMs();
    await connection.open();
    const tookMs = Math.round(systemClock.monotonicMs() - beganMs);
    const where = found.embedded ? "embedded" : `${connection.address.host}:${connection.address.port}`;
    const reached = finding("store", "ok", `PostgreSQL, ${where}, connected in ${tookMs} ms`);
    const facts = [reached, pooler(connection), ...(await server(connection)), await room(connection)];
    const tables = await schema(connection, config.schema);
    if (tables[0]?.status !== "ok") return [...facts, ...tables];
    const store = createPostgresStore({ url: found.url, schema: config.schema, poolMax: 2 });
    undo.push(() => store.close());
    return [...facts, ...tables, ...(await checkDelivery(store))];
  } catch (error) {
    return [finding("store", "fail", errorText(error))];
  } finally {
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}

function pooler({ direct }: Connection): Finding {
  if (direct) return finding("pooler", "ok", "none in between");
  return finding(
    "pooler",
    "warn",
    "a pooler is in between: works without named statements and LISTEN, so wake-ups wait for a poll",
  );
}

async function server(connection: Connection): Promise<Finding[]> {
  const beganMs = systemClock.wallMs();
  const [row = []] = await connection.rows(
    "examine the server",
    `select current_setting('server_version'), current_setting('server_version_num'), current_setting('fsync'),
       current_setting('synchronous_commit'), current_setting('full_page_writes'), pg_is_in_recovery()::text,
       current_setting('default_transaction_read_only'), (extract(epoch from clock_timestamp()) * 1000)::text`,
    [],
    { reads: true },
  );
  const [version, number, fsync, commit, pages, standby, readOnly, timeMs] = row;
  const half = (systemClock.wallMs() - beganMs) / 2;
  const known = MAJORS.includes(Math.floor(Number(number) / 10_000));
  const setting = (name: string, value: string | null | undefined, good: boolean): Finding =>
    finding(name, good ? "ok" : "fail", `${value}${good ? "" : ": what was accepted would not survive a power loss"}`);
  const writable = standby !== "true" && readOnly !== "on";
  return [
    finding("version", known ? "ok" : "fail", `${version}${known ? "" : ": 14 to 18 are supported"}`),
    setting("fsync", fsync, fsync === "on"),
    setting("synchronous_commit", commit, commit !== "off"),
    setting("full_page_writes", pages, pages === "on"),
    finding("writable", writable ? "ok" : "fail", writable ? "yes" : "no: a standby or read-only, connect to the primary"),
    clockSkew(Number(timeMs), beganMs + half, half),
  ];
}

/** Each process of ours may use eleven: a server that is nearly full refuses the next one, and other programs' connections. */
async function room(connection: Connection): Promise<Finding> {
  const text = `select count(*)::text, (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int)::text
    from pg_stat_activity where backend_type = 'client backend'`;
  const [used = 0, most = 0] = ((await connection.rows("count connections", text, [], { reads: true }))[0] ?? []).map(Number);
  const close = used > most * 0.8;
  const remedy = close ? ": raise max_connections, or put a pooler in front; a process uses at most 11" : "";
  return finding("connections", close ? "warn" : "ok", `${used} of ${most} in use${remedy}`);
}

async function schema(connection: Connection, name: string): Promise<Finding[]> {
  try {
    const states = await migrationStatus(connection, name);
    const missing = states.filter(({ applied }) => !applied);
    const latest = states.filter(({ applied }) => applied).at(-1);
    if (latest === undefined)
      return [finding("schema", "warn", `${name} is not there yet: serve or \`makegood migrate up\` makes it`)];
    if (missing.length > 0) {
      return [finding("schema", "warn", `${name} misses ${missing.length} migration(s): run \`makegood migrate up\``)];
    }
    const days = await daysAhead(connection, name, systemClock.wallMs());
    const room = finding(
      "partitions",
      days >= 2 ? "ok" : "warn",
      `${days} days ahead${days >= 2 ? "" : ": is a dispatcher running?"}`,
    );
    return [finding("schema", "ok", `${name} at ${latest.version}-${latest.name}`), room];
  } catch (error) {
    return [finding("schema", "fail", errorText(error))];
  }
}
