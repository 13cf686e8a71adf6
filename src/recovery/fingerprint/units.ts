/** Words that turn the number before them into a duration or a size, and the names that begin a date. */

const words = (text: string): string[] => text.split(" ");

const UNITS = new Map<string, "<duration>" | "<size>">();
for (const unit of words(
  "ns us µs ms msec msecs millis millisecond milliseconds microsecond microseconds nanosecond nanoseconds s sec secs second seconds min mins minute minutes h hr hrs hour hours d day days week weeks",
)) {
  UNITS.set(unit, "<duration>");
}
for (const unit of words("b byte bytes kb mb gb tb pb kib mib gib tib kbytes mbytes k m g t bit bits")) {
  if (!UNITS.has(unit)) UNITS.set(unit, "<size>");
}

/** A single letter is a unit only when it is written onto its number: "5s" is a duration, "5 s" may be anything; "5 B" are bytes. */
export function unitOf(word: string, attached: boolean): "<duration>" | "<size>" | undefined {
  if (word.length > 12 || (word.length === 1 && !attached && word !== "B")) return undefined;
  return UNITS.get(word) ?? UNITS.get(word.toLowerCase());
}

const DAYS = new Set(words("Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday"));
const MONTHS = new Set(
  words(
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec January February March April June July August September October November December",
  ),
);

export function isDay(word: string): boolean {
  return DAYS.has(word);
}

export function isMonth(word: string): boolean {
  return MONTHS.has(word);
}
