/** Where things end that may hold spaces, brackets or marks: quoted names, urls, queries, and dates in words. Bounded looks ahead. */
import { classOf, DIGIT, endOf, LETTER, SPACE, SPACE_CLASS } from "./characters.ts";

const QUOTED_CHARS_MAX = 200;

/**
 * The end of a quoted name that opens at `start` after `mark`; -1 when it is none. One quoted word is a name, and so is a quoted
 * value after "="; a longer quotation is text and is read like it.
 */
export function quotedNameEnd(text: string, start: number, mark: string): number {
  const quote = text[start];
  if (start > 0 && (continues(text, start - 1) || text[start - 1] === ">")) return -1;
  let spaces = false;
  // Spaces in a row count once, as they are written.
  for (let i = start + 1, most = QUOTED_CHARS_MAX; i < text.length && most > 0; i++) {
    // A placeholder inside: this was looked at before.
    if (text[i] === "<") return -1;
    const space = classOf(text.charCodeAt(i)) === SPACE;
    if (!space || classOf(text.charCodeAt(i - 1)) !== SPACE) most--;
    spaces ||= space;
    if (text[i] !== quote || (quote !== '"' && (continues(text, i + 1) || text[i + 1] === "<"))) continue;
    // Before ":" stands a member of a JSON object: its name says what it is, and its value may be the error itself.
    return mark === "=" || (!spaces && mark !== ":" && text[i + 1] !== ":") ? i + 1 : -1;
  }
  return -1;
}

function continues(text: string, at: number): boolean {
  const kind = classOf(text.charCodeAt(at));
  return kind === LETTER || kind === DIGIT;
}

const URL = new RegExp(`[^${SPACE_CLASS}"'\`<>)\\]}]*`, "y");
const QUERY = new RegExp(`[^${SPACE_CLASS}"'\`]*`, "y");

/** Everything up to a space, a quote or a closing bracket, without the mark that ends a sentence. */
export function urlEnd(text: string, from: number): number {
  const end = endOf(URL, text, from);
  return end > from && ",.;:".includes(text[end - 1] as string) ? end - 1 : end;
}

/** What follows the path of a request up to a space or a quote belongs to it. */
export function queryEnd(text: string, from: number): number {
  return endOf(QUERY, text, from);
}

const DAYS = "Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday";
const MONTHS =
  "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec January February March April June July August September October November December";
const oneOf = (words: string): string => `(?:${words.replaceAll(" ", "|")})`;
const GAP = `[${SPACE_CLASS}]{1,3}`;
const MAYBE_GAP = `[${SPACE_CLASS}]{0,3}`;
const LETTERS = `[^${SPACE_CLASS}!-@\\[-\`{-~]`;
/** Neither a letter nor a digit follows. */
const BOUNDARY = `(?![^${SPACE_CLASS}!-/:-@\\[-\`{-~])`;
const YEAR = `\\d{4}${BOUNDARY}`;
/** hh:mm or hh:mm:ss, with a fraction. */
const CLOCK = `\\d\\d?:\\d\\d(?::\\d\\d|(?!:\\d\\d))(?:[.,]\\d{1,10}|(?![.,]\\d))${BOUNDARY}`;

const MONTH_YEAR = new RegExp(`${oneOf(MONTHS)}${GAP}${YEAR}(?:${GAP}${CLOCK})?`, "y");
const MONTH_DAY = new RegExp(`(?:${oneOf(DAYS)},?${GAP}){0,8}${oneOf(MONTHS)}${GAP}\\d\\d?${BOUNDARY}`, "y");
const THEN_CLOCK = new RegExp(`${GAP}${CLOCK}`, "y");
const THEN_ZONE = new RegExp(`${GAP}${LETTERS}{3,4}(?=${MAYBE_GAP}${YEAR})`, "y");
const THEN_YEAR = new RegExp(`${MAYBE_GAP}(?:,${MAYBE_GAP})?${YEAR}`, "y");

/** The end of "Jun 2005 07:07:00" behind a day; -1 when no year follows the month. */
export function monthYearEnd(text: string, start: number): number {
  return endOf(MONTH_YEAR, text, start);
}

/** The end of "Fri Jun 17 07:07:00 UTC 2005" or the beginning of it; -1 when no day of a month is there. */
export function dateEnd(text: string, start: number): number {
  let end = endOf(MONTH_DAY, text, start);
  if (end < 0) return -1;
  const clock = endOf(THEN_CLOCK, text, end);
  if (clock > 0) {
    const zone = endOf(THEN_ZONE, text, clock);
    const name = text.slice(clock, zone);
    end = zone > 0 && name === name.toUpperCase() ? zone : clock;
  }
  return Math.max(end, endOf(THEN_YEAR, text, end));
}
