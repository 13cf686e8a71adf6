/** How many values a place must have shown to be variable. Counts only grow, so groups are joined and never parted, in any order. */
const NEVER = Number.POSITIVE_INFINITY;

/**
 * What a token is, by where it stands: the letter that rows are kept with, how many words must stand beside it (a line of two words says too
 * little), and how many values open its place, the second number where the place has shown a number or an address too.
 */
export const KINDS = {
  /** Of a sentence: held for constant longest, see below. */
  word: ["w", 0, NEVER, NEVER],
  /** What the mask hid. */
  any: ["a", 0, 1, 1],
  /** The same, of a make that no word has: an address, a uuid. */
  sure: ["u", 0, 1, 1],
  /** A stem with figures; among more words a stem is less. */
  id: ["i", 1, 3, 2],
  stem: ["t", 3, 2, 2],
  /** After "user" and its like. */
  entity: ["e", 2, 2, 2],
  /** Between prepositions. */
  slot: ["s", 3, 3, 2],
  /** With dots or slashes. */
  name: ["n", 2, 3, 2],
  /** After "=". */
  value: ["v", 2, 4, 2],
  /** In brackets. */
  remark: ["p", 3, 5, 5],
  /** Before a value in brackets, as in LOCAL(0). */
  call: ["c", 2, NEVER, 2],
} as const satisfies Record<string, readonly [letter: string, wordsBeside: number, alone: number, besideValues: number]>;

export type Kind = keyof typeof KINDS;

export function valuesNeeded(kinds: Iterable<Kind>, besideValues: boolean): number {
  let least: number = NEVER;
  for (const kind of kinds) least = Math.min(least, KINDS[kind][besideValues ? 3 : 2]);
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
  if (wordsAround < 2) return wordsAround === 1 && besideValues ? 12 : NEVER;
  const alone = wordsAround >= 6 ? 5 : wordsAround >= 4 ? 7 : wordsAround === 3 ? 10 : 16;
  return besideValues ? Math.max(3, alone - 3) : alone;
}
