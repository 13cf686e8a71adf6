/** The typed placeholders of the mask: `<num>`, `<ip>` and the rest, in angle brackets. Nothing else in brackets counts as one. */

export const PLACEHOLDERS: readonly string[] = "num id hex uuid ip host url path email str time duration size version bool".split(
  " ",
);

const KNOWN = new Set(PLACEHOLDERS.map((name) => `<${name}>`));
const CHARS_MAX = Math.max(...PLACEHOLDERS.map(({ length }) => length)) + 2;

/** What stands at a "<", if it is a placeholder. Looks a few characters ahead, so a text of "<" alone costs no more than another. */
export function placeholderAt(text: string, at: number): string | undefined {
  const ahead = text.slice(at, at + CHARS_MAX);
  const found = ahead.slice(0, ahead.indexOf(">") + 1);
  return KNOWN.has(found) ? found : undefined;
}

export function withoutDigits(word: string): string {
  return word.replace(/\d+/g, "<num>");
}
