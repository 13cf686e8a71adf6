/**
 * What a PostgreSQL server says about itself, for a person who asks whether it can be trusted with messages: reachable, of a known version,
 * durable, with a pooler or without, our schema in place and room ahead. It only reads.
 */
import { systemClock } from "../../platform/clock.ts";
import { type Examined, examined, skewOf } from "../shared/examined.ts";
import { type Connection, createConnection } from "./connection.ts";
import { examineSchema } from "./examine-schema.ts";
import { examineSettings } from "./examine-settings.ts";

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
    const facts = [...(await examineSettings(connection)), await skewOf(() => timeOf(connection))];
    return { found: [reached, pooler(connection), ...facts, ...tables], usable: tables[0]?.status === "ok" };
  } finally {
    await connection.close();
  }
}

function pooler({ direct }: Connection): Examined {
  const between = "a pooler is in between: works without named statements and LISTEN, so wake-ups wait for a poll";
  return examined("pooler", direct, direct ? "none in between" : between, "warn");
}

async function timeOf(connection: Connection): Promise<number> {
  const text = "select (extract(epoch from clock_timestamp()) * 1000)::text";
  return Number((await connection.rows("read the clock", text, [], { reads: true }))[0]?.[0]);
}
