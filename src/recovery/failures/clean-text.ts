/** Texts from outside made harmless, for a terminal and a database: no control character, no half of a pair, no more than a limit. */
import { isWellFormed } from "../../message/validate.ts";
import { FINGERPRINT_LIMITS } from "../fingerprint/fingerprint.ts";

/** A text is read so far for its message and its frames; of a text of 1 MiB the rest is not looked at. */
export const READ_CHARS_MAX = 65_536;
/** What is kept with an occurrence. */
const KEPT_CHARS_MAX = FINGERPRINT_LIMITS.textCharsMax;
const NAME_CHARS_MAX = 200;
export const PAYLOAD_CHARS_MAX = 65_536;

// Line breaks and tabs are what traces are made of.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/g;

export function cleanText(text: string, charsMax: number = READ_CHARS_MAX): string {
  const cut = text.length > charsMax ? text.slice(0, charsMax) : text;
  // ES2024, in every Node since 20; the compiler's library is older.
  return (cut.replaceAll("\r\n", "\n").replace(CONTROL, " ") as string & { toWellFormed(): string }).toWellFormed();
}

/** What is kept of a clean text: a copy, since a slice would hold on to all of it; half of a pair at its end is replaced. */
export function keptText(text: string): string {
  return Buffer.from(text.slice(0, KEPT_CHARS_MAX)).toString();
}

/** One line: names of topics, sinks, codes and skills. */
export function cleanName(name: string): string {
  return cleanText(name, NAME_CHARS_MAX).replace(/\s+/g, " ").trim();
}

/** A reported payload as it is kept: itself, or where it is long, its beginning and its length, still as JSON. */
export function keptPayload(payload: string): string {
  if (payload.length <= PAYLOAD_CHARS_MAX) return isWellFormed(payload) ? payload.replaceAll("\0", " ") : cleanText(payload);
  return JSON.stringify({ cut: true, chars: payload.length, begin: cleanText(payload, KEPT_CHARS_MAX) });
}

/** The longest escape of one character: six, as in a line break written as \u000a. */
const ESCAPE_CHARS = 6;

/** At least the first `charsMax` characters of a text in JSON, quotes included: decoding the rest of it would hold up everybody else. */
export function headOf(source: string, charsMax: number): string {
  const most = 1 + ESCAPE_CHARS * charsMax;
  if (source.length <= most + 1) return JSON.parse(source) as string;
  return JSON.parse(`${source.slice(0, wholeEnd(source, most))}"`) as string;
}

/** `end`, or where the escape begins that it would cut in two. */
function wholeEnd(source: string, end: number): number {
  const last = source.lastIndexOf("\\", end - 1);
  if (last < end - ESCAPE_CHARS) return end;
  // In a row of backslashes every second one is only the second half of the one before.
  let first = last;
  while (source[first - 1] === "\\") first--;
  if ((last - first) % 2 === 1) return end;
  const chars = source[last + 1] === "u" ? ESCAPE_CHARS : 2;
  return last + chars > end ? last : end;
}
