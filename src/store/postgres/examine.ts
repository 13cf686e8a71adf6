/**
 * What a PostgreSQL server says about itself, for a person who asks whether it can be trusted with messages: reachable, of a known version,
 * durable, with a pooler or without, our schema in place and room ahead. It only reads.
 */
import { errorText } from "../../message/errors.ts";
import { systemClock } from "../../platform/clock.ts";
import { type Examined, examined, skewOf } from "../shared/examined.ts";
import { type Connection, createConnection } from "./connection.ts";
import { migrationStatus } from "./migrate.ts";
import { daysAhead } from "./partitions.ts";

const MAJORS = [14, 15, 16, 17, 18];

/** `usable`: our schema is there and of this version. `where`: what to call the server, instead of its address. */
export async function examinePostgres(
  url: string,
  schema: string,
  where?: string,
): Promise<{ readonly found: readonly Examined[]; readonly usable: boolean }> {
  const connection = createConnection({ url, poolMax: 2 });
  try {
    const beganMs = systemClock.monotonicMs();
    await connection.open();
    const tookMs = Math.round(systemClock.monotonicMs() - beganMs);
    const { host, port } = connection.address;
    const reached = examined("store", true, `PostgreSQL, ${where ?? `${host}:${port}`}, connected in ${tookMs} ms`);
    const tables = await examineSchema(connection, schema);
    const facts = [...(await server(connection)), await skewOf(() => timeOf(connection)), await room(connection)];
    return { found: [reached, pooler(connection), ...facts, ...tables], usable: tables[0]?.status === "ok" };
  } finally {
    await connection.close();
  }
}

function pooler({ direct }: Connection): Examined {
  const between = "a pooler is in between: works without named statements and LISTEN, so wake-ups wait for a poll";
  return examined("pooler", direct, direct ? "none in between" : between, "warn");
}

async function server(connection: Connection): Promise<Examined[]> {
  const [row = []] = await connection.rows(
    "examine the server",
    `select current_setting('server_version'), current_setting('server_version_num'), current_setting('fsync'),
       current_setting('synchronous_commit'), current_setting('full_page_writes'), pg_is_in_recovery()::text,
       current_setting('default_transaction_read_only')`,
    [],
    { reads: true },
  );
  const [version, number, fsync, commit, pages, standby, readOnly] = row;
  const known = MAJORS.includes(Math.floor(Number(number) / 10_000));
  const setting = (name: string, value: string | null | undefined, good: boolean): Examined =>
    examined(name, good, `${value}${good ? "" : ": what was accepted would not survive a power loss"}`);
  const writable = standby !== "true" && readOnly !== "on";
  return [
    examined("version", known, `${version}${known ? "" : ": 14 to 18 are supported"}`),
    setting("fsync", fsync, fsync === "on"),
    setting("synchronous_commit", commit, commit !== "off"),
    setting("full_page_writes", pages, pages === "on"),
    examined("writable", writable, writable ? "yes" : "no: a standby or read-only, connect to the primary"),
  ];
}

async function timeOf(connection: Connection): Promise<number> {
  const text = "select (extract(epoch from clock_timestamp()) * 1000)::text";
  return Number((await connection.rows("read the clock", text, [], { reads: true }))[0]?.[0]);
}

/** Each process of ours may use eleven: a server that is nearly full refuses the next one, and other programs' connections. */
async function room(connection: Connection): Promise<Examined> {
  const text = `select count(*)::text, (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int)::text
    from pg_stat_activity where backend_type = 'client backend'`;
  const [used = 0, most = 0] = ((await connection.rows("count connections", text, [], { reads: true }))[0] ?? []).map(Number);
  const roomy = used <= most * 0.8;
  const remedy = roomy ? "" : ": raise max_connections, or put a pooler in front; a process uses at most 11";
  return examined("connections", roomy, `${used} of ${most} in use${remedy}`, "warn");
}

async function examineSchema(connection: Connection, name: string): Promise<Examined[]> {
  try {
    const states = await migrationStatus(connection, name);
    const missing = states.filter(({ applied }) => !applied).length;
    const latest = states.filter(({ applied }) => applied).at(-1);
    const absent = `${name} is not there yet: serve or \`makegood migrate up\` makes it`;
    if (latest === undefined) return [examined("schema", false, absent, "warn")];
    if (missing > 0)
      return [examined("schema", false, `${name} misses ${missing} migration(s): run \`makegood migrate up\``, "warn")];
    const days = await daysAhead(connection, name, systemClock.wallMs());
    const ahead = `${days} days ahead${days >= 2 ? "" : ": is a dispatcher running?"}`;
    return [
      examined("schema", true, `${name} at ${latest.version}-${latest.name}`),
      examined("partitions", days >= 2, ahead, "warn"),
    ];
  } catch (error) {
    return [examined("schema", false, errorText(error))];
  }
}
