/**
 * Dates that are written in words: "Fri Jun 17 07:07:00 2005", "Jun 17", "17 Jun 2005". Looks a bounded number of characters
 * ahead and never back.
 */
import { classOf, DIGIT, isDigit, LETTER, SPACE } from "./characters.ts";
import { isDay, isMonth } from "./units.ts";

/** The end of the run of `kind` that begins at `at`, at most `most` long; `at` itself when there is none. */
function run(text: string, at: number, kind: number, most: number): number {
  let end = at;
  while (end < text.length && end - at <= most && classOf(text.charCodeAt(end)) === kind) end++;
  return end;
}

function gap(text: string, at: number): number {
  return run(text, at, SPACE, 2);
}

function boundary(text: string, at: number): boolean {
  const kind = classOf(text.charCodeAt(at));
  return at >= text.length || (kind !== LETTER && kind !== DIGIT);
}

/** hh:mm or hh:mm:ss at `at`: where it ends, or -1. */
function clockEnd(text: string, at: number): number {
  let end = run(text, at, DIGIT, 2);
  if (end === at || end - at > 2) return -1;
  let parts = 1;
  while (parts < 3 && text[end] === ":" && isDigit(text.charCodeAt(end + 1)) && isDigit(text.charCodeAt(end + 2))) {
    end += 3;
    parts++;
  }
  if (parts > 1 && (text[end] === "." || text[end] === ",") && isDigit(text.charCodeAt(end + 1)))
    end = run(text, end + 1, DIGIT, 9);
  return parts > 1 && boundary(text, end) ? end : -1;
}

function yearEnd(text: string, at: number): number {
  const end = run(text, at, DIGIT, 4);
  return end - at === 4 && boundary(text, end) ? end : -1;
}

/** A time, a zone and a year may follow a day of a month, each once. */
function restEnd(text: string, from: number): number {
  let end = from;
  const clock = clockEnd(text, gap(text, end));
  if (clock > 0) {
    end = clock;
    const zone = gap(text, end);
    const zoneEnd = run(text, zone, LETTER, 4);
    const capital =
      zoneEnd - zone >= 3 && zoneEnd - zone <= 4 && text.slice(zone, zoneEnd) === text.slice(zone, zoneEnd).toUpperCase();
    if (capital && yearEnd(text, gap(text, zoneEnd)) > 0) end = zoneEnd;
  }
  let next = gap(text, end);
  if (text[next] === ",") next = gap(text, next + 1);
  const year = yearEnd(text, next);
  return year > 0 ? year : end;
}

/** The end of "Jun 2005" behind a day ("17 Jun 2005 07:07:00"); -1 when no year follows the month. */
export function monthYearEnd(text: string, start: number, wordEnd: number): number {
  if (!isMonth(text.slice(start, wordEnd))) return -1;
  const year = yearEnd(text, gap(text, wordEnd));
  if (year < 0) return -1;
  const clock = clockEnd(text, gap(text, year));
  return clock > 0 ? clock : year;
}

/** The end of a date whose first word stands at `start` and ends at `wordEnd`; -1 when it is none. */
export function wordDateEnd(text: string, start: number, wordEnd: number): number {
  const length = wordEnd - start;
  if (length < 3 || length > 9) return -1;
  const word = text.slice(start, wordEnd);
  if (isDay(word)) {
    let next = wordEnd;
    if (text[next] === ",") next++;
    const month = gap(text, next);
    const monthEnd = run(text, month, LETTER, 9);
    return month > next && monthEnd > month ? wordDateEnd(text, month, monthEnd) : -1;
  }
  if (!isMonth(word)) return -1;
  const day = gap(text, wordEnd);
  const dayEnd = run(text, day, DIGIT, 2);
  if (day === wordEnd || dayEnd === day || dayEnd - day > 2 || !boundary(text, dayEnd)) return -1;
  return restEnd(text, dayEnd);
}
