/**
 * Dead letters that are in a stream and not in the store: a copy whose original is gone, and what was refused and never archived. Nobody who
 * looks at the store sees them. A bounded part at a time, from where the last look ended; what retention took from the store is no loss.
 */
import { isUuid } from "../../../platform/ids.ts";
import { type Beside, conservationOf, type Found, type PassOptions } from "../../conservation.ts";
import type { Store } from "../../store.ts";
import type { RedisPort } from "../port.ts";
import { type DeadEntry, REFUSED_TOPIC, readDead } from "./dead-stream.ts";
import { entryKey } from "./inlet-options.ts";

export interface StreamOnlyParts {
  readonly store: Store;
  /** Connected for each look. */
  readonly connect: () => Promise<RedisPort>;
  readonly streamOf: (cluster: boolean) => string;
  /** How long the store keeps dead letters that ended; null: for ever. */
  readonly deadKeptMs: number | null;
}

const PAGE = 100;
const PAGES_OF_A_SLICE = 10;
/** What was refused is archived a moment after it is in the stream. */
const SETTLING_MS = 60_000;
const NAMED = 5;

const timeOf = (id: string): number => Number(id.split("-")[0]);
/** Ids in their order, as text. */
const placeOf = (id: string): string => {
  const parts = id.split("-").map((part) => part.padStart(20, "0"));
  return parts.join("-");
};

export function compareDeadStream({ store, connect, streamOf, deadKeptMs }: StreamOnlyParts) {
  let after: string | undefined;

  /** Of copies the store is asked by id, of what was refused by the key that its archive has. */
  async function missing(stream: string, page: readonly DeadEntry[], nowMs: number): Promise<DeadEntry[]> {
    const copies = page.flatMap(({ messageId }) => (messageId !== null && isUuid(messageId) ? [messageId] : []));
    const states = (await conservationOf(store)?.whereabouts(copies)) ?? [];
    const known = new Set(copies.filter((_, i) => states[i] !== "unknown"));
    const alone: DeadEntry[] = [];
    for (const entry of page) {
      if (entry.kind === "dead_letter") {
        if (!known.has(entry.messageId ?? "")) alone.push(entry);
        continue;
      }
      const ageMs = nowMs - timeOf(entry.id);
      if (ageMs < SETTLING_MS || ageMs > (deadKeptMs ?? Number.POSITIVE_INFINITY)) continue;
      const { data } = await store.list({ topic: REFUSED_TOPIC, key: entryKey(stream, entry.id), payload: false, limit: 1 });
      if (data.length === 0) alone.push(entry);
    }
    return alone;
  }

  const foundOf = (stream: string, alone: readonly DeadEntry[]): Found => ({
    kind: "stream_only",
    count: alone.length,
    ids: alone.map(({ id, messageId }) => messageId ?? id),
    detail: `${stream}: ${alone
      .slice(0, NAMED)
      .map(({ id }) => id)
      .join(", ")}${alone.length > NAMED ? ` and ${alone.length - NAMED} more` : ""}`,
    place: placeOf(alone.at(-1)?.id ?? ""),
  });

  return async function look(reach: PassOptions["reach"]): Promise<Beside> {
    const redis = await connect();
    try {
      const stream = streamOf(redis.cluster);
      const [seconds] = (await redis.send(stream, ["TIME"])) as unknown[];
      if (reach !== "slice") after = undefined;
      const from = after === undefined ? "" : placeOf(after);
      const found: Found[] = [];
      for (let pages = 0; reach !== "slice" || pages < PAGES_OF_A_SLICE; pages++) {
        const page = await readDead(redis, stream, after, PAGE);
        const alone = await missing(stream, page, Number(seconds) * 1_000);
        if (alone.length > 0) found.push(foundOf(stream, alone));
        after = page.length < PAGE ? undefined : page.at(-1)?.id;
        if (after === undefined) break;
      }
      return { found, unknown: null, part: { after: from, to: after === undefined ? "~" : placeOf(after) } };
    } finally {
      await redis.close();
    }
  };
}
