/**
 * A consumer group as the inlet sees it: made when it is missing, its depth, and its silent consumers removed. A depth counts what is
 * not yet processed; the length of the stream says nothing about that (DA-7, DR-12).
 */
import { hostname } from "node:os";
import type { Random } from "../../../platform/random.ts";
import { runLua } from "../lua.ts";
import type { RedisPort } from "../port.ts";
import { asStoreError, replyCode } from "../redis-errors.ts";
import { toEntries, toRecord } from "./entries.ts";
import { REMOVE_CONSUMER } from "./scripts.ts";

export interface Depth {
  /** Never handed out so far. */
  readonly waiting: number;
  /** Handed out and not yet ended. */
  readonly pending: number;
  readonly unprocessed: number;
  /** False where the server could not tell and counting stopped at its limit: there are at least so many. */
  readonly exact: boolean;
  /** Entries of the stream, those included that have ended and were not trimmed. */
  readonly length: number;
  /** Known to the group; one that died is removed after a while. */
  readonly consumers: number;
}

const COUNT_PAGE = 1_000;
const COUNT_MAX = 10_000;

export interface Group {
  readonly redis: RedisPort;
  readonly stream: string;
  readonly group: string;
}

/** A consumer's name that is unique also when two pods share a name and a process id (DA-12). */
export function uniqueConsumer(random: Random, name = `${hostname()}-${process.pid}`): string {
  return `${name}-${Buffer.from(random.bytes(8)).toString("hex")}`;
}

/** From the first entry on, so that what was added before the group is read too (DR-36). */
export async function ensureGroup({ redis, stream, group }: Group): Promise<void> {
  try {
    await redis.send(stream, ["XGROUP", "CREATE", stream, group, "0", "MKSTREAM"]);
  } catch (error) {
    if (replyCode(error) !== "BUSYGROUP") throw asStoreError(error, "stream group", true);
  }
}

export async function streamDepth({ redis, stream, group }: Group): Promise<Depth> {
  const groups = await redis.send(stream, ["XINFO", "GROUPS", stream]).catch((error: unknown) => {
    if (/no such key/.test(String(error))) return [];
    throw asStoreError(error, "stream depth", false);
  });
  const mine = (groups as unknown[]).map(toRecord).find(({ name }) => String(name) === group);
  const pending = Number(mine?.pending ?? 0);
  // Before 7.0 there is no lag, and where entries were deleted ahead of the group the server says that it does not know.
  const known = mine?.lag != null;
  const { count, exact } = known
    ? { count: Number(mine.lag), exact: true }
    : await countAfter(redis, stream, String(mine?.["last-delivered-id"] ?? "0-0"));
  const length = Number(await redis.send(stream, ["XLEN", stream]));
  return { waiting: count, pending, unprocessed: count + pending, exact, length, consumers: Number(mine?.consumers ?? 0) };
}

async function countAfter(redis: RedisPort, stream: string, id: string): Promise<{ count: number; exact: boolean }> {
  let count = 0;
  let after = id;
  while (count < COUNT_MAX) {
    const page = toEntries(await redis.send(stream, ["XRANGE", stream, `(${after}`, "+", "COUNT", String(COUNT_PAGE)]));
    count += page.length;
    const last = page.at(-1);
    if (page.length < COUNT_PAGE || !last) return { count, exact: true };
    after = last.id;
  }
  return { count, exact: false };
}

/** Those silent for `silentMs` that hold nothing; returns how many others there were, and the names of those that went. */
export async function removeSilent(group: Group, me: string, silentMs: number): Promise<{ checked: number; removed: string[] }> {
  const { redis, stream } = group;
  const reply = await redis.send(stream, ["XINFO", "CONSUMERS", stream, group.group]);
  const others = (reply as unknown[]).map(toRecord).filter(({ name }) => String(name) !== me);
  const removed: string[] = [];
  for (const { name, pending, idle } of others) {
    if (Number(pending) > 0 || Number(idle) < silentMs) continue;
    if (await removeConsumer(group, String(name), silentMs)) removed.push(String(name));
  }
  return { checked: others.length, removed };
}

export async function removeConsumer({ redis, stream, group }: Group, name: string, silentMs: number): Promise<boolean> {
  return Number(await runLua(redis, REMOVE_CONSUMER, [stream], [group, name, String(silentMs)])) === 1;
}
