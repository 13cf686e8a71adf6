/**
 * A stream of dead letters as a person works on it: entries are listed, replayed, archived in the store, and deleted only when they are there
 * (REC-50). Two kinds stand in it: copies of dead letters that the outlet published, whose original is in the store, and what the inlet
 * refused, which was nowhere else. Every step can be cut off and made again: the store knows by key or revision what it did.
 */
import { errorText, MakegoodError } from "../../../message/errors.ts";
import { LIMITS } from "../../../message/limits.ts";
import type { NewMessage } from "../../../message/message.ts";
import type { TopicDefinition } from "../../../message/topic.ts";
import { payloadHash } from "../../../message/validate.ts";
import type { Store } from "../../store.ts";
import type { RedisPort } from "../port.ts";
import { type StreamEntry, toEntries } from "./entries.ts";
import { entryKey, type InletMessage } from "./inlet-options.ts";

/** Dead letters from the start: what a stream brought and no topic takes. Nothing is ever delivered of it. */
export const REFUSED_TOPIC = "streams/refused";
const REFUSED_DEFINITION: TopicDefinition = {
  name: REFUSED_TOPIC,
  sink: { kind: "function" },
  retry: { policy: "exponential", attemptsMax: 1 },
  schemaVersion: null,
  leaseMs: 30_000,
  concurrency: 1,
  tenantConcurrency: null,
  ordering: "none",
};

export interface DeadEntry {
  readonly id: string;
  /** `dead_letter`: a copy of one in the store. `refused`: nowhere else. */
  readonly kind: "dead_letter" | "refused";
  readonly code: string;
  readonly reason: string;
  /** Of a dead letter. */
  readonly messageId: string | null;
  readonly generation: number;
  /** Of what was refused: where it came from. */
  readonly stream: string | null;
  readonly entryId: string | null;
  /** Without what was added when it came here. */
  readonly fields: Readonly<Record<string, string>>;
}

export interface DeadStreamParts {
  readonly redis: RedisPort;
  readonly stream: string;
  readonly store: Store;
  readonly ids: () => string;
  readonly actor: string;
  /** Where entries are archived instead of the store, because that is the Redis they are in. */
  readonly files?: EntryFiles | undefined;
}

/** Files of entries, in the order of the stream. */
export interface EntryFiles {
  /** Those that are in no file yet. */
  fresh(entries: readonly DeadEntry[]): Promise<DeadEntry[]>;
  write(entries: readonly DeadEntry[]): Promise<unknown>;
}

/** How each entry went: `replayed` or `archived`, `skipped` because it was before, or why not. */
export interface Worked {
  readonly done: number;
  readonly skipped: number;
  readonly errors: readonly { readonly id: string; readonly error: string }[];
}

export const REPLAY_MAX = 1_000;
export const TRIM_LENGTH = 10_000;
const PAGE = 100;

export function toDeadEntry({ id, fields }: StreamEntry): DeadEntry {
  const { dead_code, dead_reason, dead_stream, dead_group, dead_id, dead_deliveries, ...own } = fields;
  const refused = dead_stream !== undefined && dead_id !== undefined;
  return {
    id,
    kind: refused ? "refused" : "dead_letter",
    code: (refused ? dead_code : fields.last_code) ?? "",
    reason: (refused ? dead_reason : fields.last_error) ?? "",
    messageId: refused ? null : (fields.id ?? null),
    generation: Number(fields.generation ?? 0),
    stream: dead_stream ?? null,
    entryId: dead_id ?? null,
    fields: refused ? own : fields,
  };
}

/** Oldest first, after an id. */
export async function readDead(redis: RedisPort, stream: string, after: string | undefined, limit: number): Promise<DeadEntry[]> {
  const from = after === undefined ? "-" : `(${after}`;
  return toEntries(await redis.send(stream, ["XRANGE", stream, from, "+", "COUNT", String(limit)])).map(toDeadEntry);
}

export async function findDead(redis: RedisPort, stream: string, id: string): Promise<DeadEntry | null> {
  return toEntries(await redis.send(stream, ["XRANGE", stream, id, id])).map(toDeadEntry)[0] ?? null;
}

/** Makes what the stream holds a dead letter of the store, once; a copy of one that is there already is archived by that. */
export async function archiveEntry(
  { store, stream, ids }: Omit<DeadStreamParts, "redis" | "actor">,
  entry: DeadEntry,
): Promise<"archived" | "skipped"> {
  if (entry.messageId !== null && (await store.get(entry.messageId)) !== null) return "skipped";
  const { id: entry_id, kind, code, reason, fields } = entry;
  const payload = JSON.stringify({
    stream,
    entry_id,
    kind,
    code,
    reason,
    from_stream: entry.stream,
    from_id: entry.entryId,
    fields,
  });
  if (Buffer.byteLength(payload) > LIMITS.payloadBytesMax)
    throw new MakegoodError("payload_too_large", `${entry_id} is too large for a message`);
  const message: NewMessage = {
    id: ids(),
    topic: REFUSED_TOPIC,
    tenantId: null,
    key: entryKey(stream, entry_id),
    payload,
    payloadHash: payloadHash(payload),
    delayMs: 0,
    priority: 0,
    orderingKey: null,
    traceparent: null,
    schemaVersion: null,
    directTry: { code: code || "refused", error: reason || null, rejected: true },
  };
  if ((await store.topics.get(REFUSED_TOPIC)) === null) await store.topics.put(REFUSED_DEFINITION, "api");
  const [accepted] = await store.enqueue([message]);
  if (accepted?.kind === "conflict") throw new MakegoodError("key_conflict", `another entry is archived under ${message.key}`);
  return accepted?.kind === "accepted" ? "archived" : "skipped";
}

interface Tally {
  done: number;
  skipped: number;
  readonly errors: { id: string; error: string }[];
}

async function each(
  entries: readonly DeadEntry[],
  tally: Tally,
  work: (entry: DeadEntry) => Promise<boolean>,
): Promise<string[]> {
  const worked: string[] = [];
  for (const entry of entries) {
    try {
      if (await work(entry)) tally.done++;
      else tally.skipped++;
      worked.push(entry.id);
    } catch (error) {
      tally.errors.push({ id: entry.id, error: errorText(error) });
    }
  }
  return worked;
}

async function intoFile(files: EntryFiles, page: readonly DeadEntry[], tally: Tally): Promise<string[]> {
  const fresh = await files.fresh(page);
  if (fresh.length > 0) await files.write(fresh);
  tally.done += fresh.length;
  tally.skipped += page.length - fresh.length;
  return page.map(({ id }) => id);
}

/** All of it, or with `oldest` so many from its beginning; `remove`: what is archived leaves the stream. */
export async function archiveDead(parts: DeadStreamParts, { oldest = Number.POSITIVE_INFINITY, remove = false } = {}) {
  const { redis, stream } = parts;
  const tally: Tally = { done: 0, skipped: 0, errors: [] };
  let [left, removed] = [oldest, 0];
  for (let after: string | undefined; left > 0; ) {
    const page = await readDead(redis, stream, after, Math.min(PAGE, left));
    if (page.length === 0) break;
    const there = parts.files
      ? await intoFile(parts.files, page, tally)
      : await each(page, tally, async (entry) => (await archiveEntry(parts, entry)) === "archived");
    if (remove && there.length > 0) removed += Number(await redis.send(stream, ["XDEL", stream, ...there]));
    left -= page.length;
    after = page.at(-1)?.id;
  }
  return { ...tally, removed };
}

/** What is beyond `lengthMax`, the oldest first: archived, and then deleted. Nothing that is not archived goes (DR-11). */
export async function trimDead(parts: DeadStreamParts, lengthMax: number) {
  const length = Number(await parts.redis.send(parts.stream, ["XLEN", parts.stream]));
  return archiveDead(parts, { oldest: Math.max(0, length - lengthMax), remove: true });
}

export interface Replaying extends DeadStreamParts {
  /** What an entry of the stream means, as at its inlet. */
  readonly read: (entry: StreamEntry) => Omit<InletMessage, "key"> & { readonly key?: string | undefined };
  /** Resolves when they are durable; a repeat of a key is the same message. */
  readonly accept: (messages: readonly InletMessage[]) => Promise<unknown>;
}

/** False: it was replayed or settled before. */
async function replayEntry(parts: Replaying, entry: DeadEntry): Promise<boolean> {
  const { store, redis, stream, actor } = parts;
  const reason = `from ${stream} ${entry.id}`;
  if (entry.kind === "dead_letter") {
    const found = await store.get(entry.messageId ?? "");
    if (!found) throw new MakegoodError("message_not_found", `${entry.messageId} is not in the store any more`);
    // Another generation: this death was replayed before.
    if (found.status !== "dead" || found.resolution !== "open" || found.generation !== entry.generation) return false;
    const result = await store.intervene({ id: found.id, action: "replay", actor, reason, revision: found.revision });
    return result.kind === "done";
  }
  const [from, id] = [entry.stream as string, entry.entryId as string];
  const message = parts.read({ id, fields: entry.fields });
  // The key is that of the first reading: accepted then or now, it is one message (DR-13).
  await parts.accept([{ ...message, key: message.key ?? entryKey(from, id) }]);
  const archived = await store.list({ topic: REFUSED_TOPIC, key: entryKey(stream, entry.id), status: "dead", limit: 1 });
  for (const one of archived.data) await store.intervene({ id: one.id, action: "resolve", actor, reason: `replayed ${reason}` });
  await redis.send(stream, ["XDEL", stream, entry.id]);
  return true;
}

/** These, or the oldest; at most a thousand (REC-39). What fails stays where it is. */
export async function replayDead(
  parts: Replaying,
  which: { readonly ids: readonly string[] } | { readonly limit: number },
): Promise<Worked> {
  const { redis, stream } = parts;
  const tally: Tally = { done: 0, skipped: 0, errors: [] };
  if ("ids" in which) {
    for (const id of which.ids.slice(0, REPLAY_MAX)) {
      const entry = await findDead(redis, stream, id);
      if (entry) await each([entry], tally, (one) => replayEntry(parts, one));
      else tally.skipped++;
    }
    return tally;
  }
  const entries = await readDead(redis, stream, undefined, Math.min(which.limit, REPLAY_MAX));
  await each(entries, tally, (entry) => replayEntry(parts, entry));
  return tally;
}
