/**
 * The doctor's look at the store itself: what the server says, and who delivers. It makes nothing: a store that is not there is said to be missing.
 */
import { errorText } from "../../message/errors.ts";
import { storeUrl } from "../../server/open-store.ts";
import { createPostgresStore, examinePostgres } from "../../store/postgres/index.ts";
import { Stop } from "../exit-code.ts";
import { refuseNowhere, warnings } from "../local.ts";
import type { CommandContext } from "../run.ts";
import { checkDelivery } from "./delivery.ts";
import { clockSkew, type Finding, finding } from "./finding.ts";
import { checkRedisStore } from "./redis.ts";

export async function checkStore(context: CommandContext): Promise<Finding[]> {
  const { store } = context.config;
  if (store === "memory") return [finding("store", "warn", "memory: what was accepted is gone when the process ends")];
  const redis = await checkRedisStore(context.config);
  if (store === "redis") return redis;
  // The second rung: what is wrong with it does not stop delivery.
  const second = redis.map((one) => (one.status === "fail" ? { ...one, status: "warn" as const } : one));
  return [...(await checkPostgres(context)), ...second];
}

async function checkPostgres({ io, config, init }: CommandContext): Promise<Finding[]> {
  const undo: (() => Promise<void>)[] = [];
  try {
    if (!init) await refuseNowhere(config);
    const { url, embedded, release } = await storeUrl({ config, log: warnings(io) });
    undo.push(release);
    const where = embedded ? "embedded" : undefined;
    const { found, timeMs, askedMs, halfMs, usable } = await examinePostgres({ url, schema: config.schema, where });
    const facts = [...found, clockSkew(timeMs, askedMs, halfMs)];
    if (!usable) return facts;
    const store = createPostgresStore({ url, schema: config.schema, poolMax: 2 });
    undo.push(() => store.close());
    return [...facts, ...(await checkDelivery(store))];
  } catch (error) {
    return [finding("store", error instanceof Stop ? "warn" : "fail", errorText(error))];
  } finally {
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}
