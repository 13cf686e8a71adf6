/** Words that hold a digit. What is written in letters before a number stays ("eth0" is "eth<num>"); a mask leaves no digit. */
import { classOf, DIGIT, endOf, hasLetter, LETTER, wordSet } from "./characters.ts";

const DURATIONS = wordSet(
  "ns us µs ms msec msecs millis millisecond milliseconds microsecond microseconds nanosecond nanoseconds s sec secs second seconds min mins minute minutes h hr hrs hour hours d day days week weeks",
);
const SIZES = wordSet("b byte bytes kb mb gb tb pb kib mib gib tib kbytes mbytes k m g t bit bits");

/** A single letter is a unit only when it is written onto its number: "5s" is a duration, "5 s" may be anything; "5 B" are bytes. */
export function unitOf(word: string, attached: boolean): "<duration>" | "<size>" | undefined {
  if (word.length > 12 || (word.length === 1 && !attached && word !== "B")) return undefined;
  const unit = word.toLowerCase();
  return DURATIONS.has(unit) ? "<duration>" : SIZES.has(unit) ? "<size>" : undefined;
}

export function withoutDigits(word: string): string {
  return word.replace(/\d+/g, "<num>");
}

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;
/** Sign, groups, fraction, exponent. */
const NUMBER = /[-+]?\.?\d+(?:\.\d+)*(?:e[-+]?\d+$)?/iy;
const FOUR_NUMBERS = /^\d+(?:\.\d+){3}(?![.\d])/;
/** 20240501T100000Z, 2024.05.01, 2024-05-01T10:00:00Z, 05/01/2024, 05/01/24, from eight characters on. */
const DATE =
  /^(?=.{8})(?:\d{8}T|\d{4}\.\d\d?\.\d\d?$|(?:\d{4}([-/])\d\d?\1\d\d?|\d\d?([-/.])\d\d?\2\d{4}|\d\d?\/\d\d?\/\d\d)(?:$|[T:.-]\d))/;
/** Long enough not to be a word; in groups, longer than that. */
const HEX = /^[\da-f-]{6,}$/i;
const VERSION = /^v\d.*\./i;

/** A word with a digit and without spaces, quotes, colons or slashes, masked. */
export function maskNumber(word: string): string {
  const end = endOf(NUMBER, word, 0);
  if (end === word.length) return FOUR_NUMBERS.test(word) ? "<ip>" : "<num>";
  if (word.length === 36 && UUID.test(word)) return "<uuid>";
  if (end > 0) {
    if (/^0x/i.test(word)) return "<hex>";
    if (DATE.test(word)) return "<time>";
    const rest = word.slice(end);
    if (rest === "%") return "<num>";
    const unit = unitOf(rest, true);
    if (unit !== undefined) return unit;
    if (!hasLetter(rest)) return word.split(".").length > 3 && word.includes("-") ? "<ip>" : "<num>";
  }
  if (HEX.test(word)) {
    const groups = word.split("-").length;
    if (groups === 1) return "<hex>";
    if (groups > 2 && word.length >= 12) return "<id>";
  }
  return VERSION.test(word) ? "<version>" : maskMixed(word);
}

function maskMixed(word: string): string {
  const first = word.search(/\d/);
  const head = word.slice(0, first);
  if (first > 0 && !hasLetter(word.slice(first))) return `${stem(head)}<num>`;
  let figures = 0;
  let letters = 0;
  for (let i = 0; i < word.length; i++) {
    const kind = classOf(word.charCodeAt(i));
    if (kind === DIGIT) figures++;
    else if (kind === LETTER) letters++;
  }
  // A name with a figure or two in it: the letters tell more than the figures.
  if (figures <= 2 && letters >= 4) return withoutDigits(word);
  return first > 2 && !hasLetter(head.slice(-1)) ? `${head}<id>` : "<id>";
}

/**
 * What stands before the figures, without what belongs to them: the sign in "blk_-12" and the letter in "rack_B12", but not
 * the dash in "node-12".
 */
function stem(head: string): string {
  const last = head.length - 1;
  const owned = head[last] === "-" || (last > 1 && hasLetter(head[last] as string));
  return last > 0 && owned && !hasLetter(head[last - 1] as string) ? head.slice(0, last) : head;
}
