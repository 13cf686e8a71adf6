/**
 * How many different values a place must have shown before it counts as variable. One configuration for every input: counts
 * only grow as more is seen, so groups are only ever joined, never parted, and the order of arrival does not matter.
 */
import type { Kind } from "./tokens.ts";

/** Names, by where they stand; fewer are needed where a number or an address has stood in the same place. */
const NEEDED: Readonly<Record<Kind, readonly [alone: number, besideValues: number]>> = {
  any: [1, 1],
  sure: [1, 1],
  id: [3, 2],
  stem: [2, 2],
  entity: [2, 2],
  slot: [3, 2],
  name: [3, 2],
  value: [4, 2],
  aside: [5, 5],
  call: [Number.POSITIVE_INFINITY, 2],
  word: [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
};

export function valuesNeeded(kinds: Iterable<Kind>, besideValues: boolean): number {
  let least = Number.POSITIVE_INFINITY;
  for (const kind of kinds) least = Math.min(least, NEEDED[kind][besideValues ? 1 : 0]);
  return least;
}

/**
 * Names in one place, all else being the same, that prove that it varies: an odd word there is a name as well, and where there are many,
 * also a word that would say what happened. One address or id proves as much as some names. Words must stand around it.
 */
export const NAMES = { some: 3, many: 5 } as const;
export const AROUND_PROVEN = 3;

/**
 * Plain words of a sentence: "started" and "stopped" are two events, twenty different words in one place are names. The
 * more words stand around the place, the fewer are needed. With one other word it varies only where ids stand as well, alone never.
 */
export function wordsNeeded(wordsAround: number, besideValues: boolean): number {
  if (wordsAround < 2) return wordsAround === 1 && besideValues ? 12 : Number.POSITIVE_INFINITY;
  const alone = wordsAround >= 6 ? 5 : wordsAround >= 4 ? 7 : wordsAround === 3 ? 10 : 16;
  return besideValues ? Math.max(3, alone - 3) : alone;
}
