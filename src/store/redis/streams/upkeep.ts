/**
 * Upkeep of a stream that people and processes leave behind: consumers that died, and the stream of dead letters against the store. Each step
 * is one script or can be made again, so that two may be at it, and one that is killed leaves nothing half done.
 */
import type { Store } from "../../store.ts";
import { runLua } from "../lua.ts";
import { archiveEntry, type DeadEntry, REFUSED_TOPIC, readDead } from "./dead-stream.ts";
import { toRecord } from "./entries.ts";
import type { Group } from "./group.ts";
import { entryKey } from "./inlet-options.ts";
import { publishOpen } from "./outlet.ts";
import { PARK_CONSUMER } from "./scripts.ts";

/** Who holds what dead consumers left, until one that lives takes it over. */
export const PARKED = "makegood-parked";
/** I10: so many entries are moved by one script. */
const PARKED_AT_ONCE = 500;

export interface Consumers {
  readonly checked: number;
  readonly removed: number;
  /** Entries of theirs that others can take over now as before. */
  readonly claimed: number;
}

/** Those silent for `silentMs` are removed; what they hold is claimed first. `dryRun`: says what would be. */
export async function removeDeadConsumers(group: Group, silentMs: number, dryRun = false): Promise<Consumers> {
  const { redis, stream } = group;
  const groups = await redis.send(stream, ["XINFO", "GROUPS", stream]).catch(noStream);
  if (!(groups as unknown[]).map(toRecord).some(({ name }) => String(name) === group.group))
    return { checked: 0, removed: 0, claimed: 0 };
  const all = ((await redis.send(stream, ["XINFO", "CONSUMERS", stream, group.group])) as unknown[]).map(toRecord);
  const dead = all.filter(
    ({ name, idle, pending }) => Number(idle) >= silentMs && (String(name) !== PARKED || Number(pending) === 0),
  );
  const total = { checked: all.length, removed: 0, claimed: 0 };
  for (const { name, pending } of dead) {
    if (dryRun) {
      total.removed++;
      total.claimed += Number(pending);
      continue;
    }
    const args = [group.group, String(name), String(silentMs), PARKED, String(PARKED_AT_ONCE)];
    for (let [moved, removed] = [PARKED_AT_ONCE, 0]; moved === PARKED_AT_ONCE && removed === 0; ) {
      [moved, removed] = ((await runLua(redis, PARK_CONSUMER, [stream], args)) as unknown[]).map(Number) as [number, number];
      total.removed += removed;
      total.claimed += moved;
    }
  }
  return total;
}

function noStream(error: unknown): unknown[] {
  if (/no such key/.test(String(error))) return [];
  throw error;
}

export interface StreamAgainstStore extends Group {
  readonly deadStream: string;
  readonly store: Store;
  readonly ids: () => string;
  /** Whose dead letters are published there. */
  readonly topics: readonly string[];
}

export interface Reconciled {
  /** Dead in the stream of dead letters and still pending in the stream itself: dead wins. */
  readonly acknowledged: number;
  /** What the stream refused and the store did not have. */
  readonly archived: number;
  /** Copies of dead letters that the store has no longer: retention took them, or the store went back. A person decides. */
  readonly missing: number;
  /** Dead letters of the store that the stream did not have. */
  readonly published: number;
  /** Where the next look goes on; null: at the beginning. */
  readonly next: string | null;
}

/** At most `limit` entries of the stream of dead letters, after `after`; and every open dead letter of the store. */
export async function reconcileStream(
  of: StreamAgainstStore,
  { after, limit, dryRun }: { readonly after: string | null; readonly limit: number; readonly dryRun: boolean },
  signal?: AbortSignal,
): Promise<Reconciled> {
  const { redis, deadStream, store, topics } = of;
  const page = await readDead(redis, deadStream, after ?? undefined, limit);
  const counts = { acknowledged: 0, archived: 0, missing: 0 };
  for (const entry of page) {
    if (signal?.aborted) break;
    if (await endPending(of, entry, dryRun)) counts.acknowledged++;
    if (entry.messageId !== null) counts.missing += (await store.get(entry.messageId)) === null ? 1 : 0;
    else if (dryRun ? !(await isArchived(store, deadStream, entry)) : await archives(of, entry)) counts.archived++;
  }
  const published = await publishOpen({ redis, store, stream: deadStream, topics, dryRun }, () => {}, signal);
  return { ...counts, published, next: page.length < limit ? null : (page.at(-1)?.id ?? null) };
}

const archives = async ({ store, deadStream: stream, ids }: StreamAgainstStore, entry: DeadEntry): Promise<boolean> =>
  (await archiveEntry({ store, stream, ids }, entry)) === "archived";

const isArchived = async (store: Store, stream: string, { id }: DeadEntry): Promise<boolean> =>
  (await store.list({ topic: REFUSED_TOPIC, key: entryKey(stream, id), limit: 1, payload: false })).data.length > 0;

async function endPending({ redis, stream, group }: Group, entry: DeadEntry, dryRun: boolean): Promise<boolean> {
  const { stream: from, entryId } = entry;
  if (from !== stream || entryId === null) return false;
  const pending = await redis.send(stream, ["XPENDING", stream, group, entryId, entryId, "1"]).catch((error: unknown) => {
    if (/NOGROUP/.test(String(error))) return [];
    throw error;
  });
  if ((pending as unknown[]).length === 0) return false;
  return dryRun || Number(await redis.send(stream, ["XACK", stream, group, entryId])) === 1;
}
