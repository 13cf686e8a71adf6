/**
 * The beginning of a JSON text value, read from its source. Of a long text only a part counts, and decoding the rest (a million escapes)
 * would hold up everybody else.
 */

/** The longest escape of one character: six, as in a line break written as \u000a. */
const ESCAPE_CHARS = 6;

/** At least the first `charsMax` characters of the text that `source` (valid JSON, quotes included) stands for. */
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
