/**
 * What does not add up, as it was last seen: what is mended goes away at the end of the next look, and what is not keeps the time at which it was found.
 */
import type { Divergence, Found } from "../../conservation.ts";
import type { Db } from "../db.ts";
import { fieldsOf } from "../rows.ts";
import { WRITE_FOUND } from "./report-scripts.ts";

const IDS_MAX = 100;
const SHOWN_MAX = 1_000;
/** Buckets that are named by themselves; what is wrong beyond is one finding of its kind. */
const PLACES_MAX = 2_000;

export interface Seen {
  readonly kind: string;
  readonly id: string | null;
  readonly topic: string | null;
  readonly tenantId: string | null;
  readonly hour: Date | null;
  readonly detail?: string | null | undefined;
  readonly count?: number | undefined;
  /** Instead of `id`, where several are known. */
  readonly ids?: readonly string[] | undefined;
}

/** Many of one kind and bucket are one finding. */
export class Findings {
  readonly #places = new Map<string, Found & { ids: string[]; count: number }>();

  add({ kind, id, topic, tenantId, hour, detail = null, count = 1, ids = id === null ? [] : [id] }: Seen): void {
    const all = this.#places;
    const own = JSON.stringify([kind, topic, tenantId, hour]);
    const place = all.has(own) || all.size < PLACES_MAX ? own : kind;
    const found = all.get(place);
    if (!found) {
      const of = place === own ? { topic, tenantId, hour } : {};
      all.set(place, { kind, ...of, count, ids: [...ids], detail });
      return;
    }
    found.count += count;
    if (found.ids.length < IDS_MAX) found.ids.push(...ids);
  }

  async write(db: Db, scope: string, all: boolean): Promise<void> {
    await writeFound(db, scope, all, this.#places);
  }
}

async function writeFound(db: Db, scope: string, all: boolean, places: Iterable<readonly [string, Found]>): Promise<void> {
  const args: (string | number)[] = [scope, all ? 1 : 0];
  for (const [place, { kind, topic = null, tenantId = null, hour = null, count, ids, detail }] of places)
    args.push(place, JSON.stringify([kind, topic, tenantId, hour?.getTime() ?? null, count, ids.slice(0, IDS_MAX), detail]));
  await db.run(WRITE_FOUND, [db.keys.key("books:found")], args);
}

export const replaceFound = (db: Db, scope: string, found: readonly Found[]): Promise<void> =>
  writeFound(
    db,
    scope,
    true,
    found.map((one, i) => [`${one.kind} ${i}`, one]),
  );

type Kept = [string, string | null, string | null, number | null, number, string[], string | null];

/** From all that is kept: 13 digits of when, then what. */
export function readFound(reply: unknown): { divergences: Divergence[]; total: number } {
  const all = [...(fieldsOf(reply)?.values() ?? [])].map((text): Divergence => {
    const [kind, topic, tenant, hour, count, ids, detail] = JSON.parse(text.slice(13)) as Kept;
    const foundAt = new Date(Number(text.slice(0, 13)));
    return { kind, topic, tenantId: tenant || null, hour: hour === null ? null : new Date(hour), count, ids, detail, foundAt };
  });
  all.sort((a, b) => a.foundAt.getTime() - b.foundAt.getTime() || (a.kind < b.kind ? -1 : 1));
  return { divergences: all.slice(0, SHOWN_MAX), total: all.reduce((sum, { count }) => sum + count, 0) };
}
