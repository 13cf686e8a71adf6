/**
 * Which lanes have something, in Redis: one script while they are few. Of very many the names are read at the beginning of a round and
 * kept until its end, so that each part of it asks for its own lanes alone.
 */
import { partOf } from "../shared/part-of-lanes.ts";
import type { Lane, Lanes } from "../store.ts";
import type { Db } from "./db.ts";
import { laneOf } from "./rows.ts";
import { LANE_NAMES, LANES, LANES_NAMED, LANES_PIECE } from "./scripts/lanes.ts";

type Reply = readonly [now: number, ...rest: string[]];

function lanesOf([now, ...rest]: Reply): Lane[] {
  return Array.from({ length: rest.length / 2 }, (_, i) => {
    const [first, due] = (rest[2 * i + 1] as string).split(" ");
    const lane = laneOf(rest[2 * i] as string, Number(first) - now);
    return due === undefined ? lane : { ...lane, due: Number(due) };
  });
}

export function createLanes(db: Db): (which?: Lanes) => Promise<Lane[]> {
  const keys = [db.keys.key("lanes")];
  /** The lanes of the round that a caller reads in parts, in their order. */
  let round: readonly string[] | null = null;

  async function readNames(): Promise<string[]> {
    const names = new Set<string>();
    let cursor = "0";
    do {
      const [next, some] = (await db.run(LANE_NAMES, keys, [cursor])) as [string, string[]];
      for (const name of some) names.add(name);
      cursor = next;
    } while (cursor !== "0");
    return [...names].sort((a, b) => (a < b ? -1 : 1));
  }

  async function named(names: readonly string[], limit: number, { now, counted }: Lanes): Promise<Lane[]> {
    const found: Lane[] = [];
    for (let from = 0; from < names.length && found.length < limit; ) {
      const piece = names.slice(from, from + Math.min(LANES_PIECE, limit - found.length));
      found.push(...lanesOf((await db.run(LANES_NAMED, keys, [counted ? 1 : 0, ...piece], { now })) as Reply));
      from += piece.length;
    }
    return found;
  }

  return async function lanes(which = {}) {
    const { after, limit, counted } = which;
    const underWay = after !== undefined && limit !== undefined ? round : null;
    const few = underWay ? [] : ((await db.run(LANES, keys, [counted ? 1 : 0], which)) as Reply | []);
    if (few.length > 0) return partOf(lanesOf(few as Reply), which);
    if (limit === undefined) {
      const all = await readNames();
      return named(after === undefined ? all : all.filter((name) => name > after), Number.POSITIVE_INFINITY, which);
    }
    const names = underWay ?? (await readNames());
    const rest = after === undefined ? names : names.slice(firstAfter(names, after));
    const found = await named(rest, limit, which);
    round = found.length < limit ? null : names;
    return found;
  };
}

/** By halving: the names are in order. */
function firstAfter(names: readonly string[], after: string): number {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((names[middle] as string) > after) high = middle;
    else low = middle + 1;
  }
  return low;
}
