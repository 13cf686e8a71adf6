/**
 * Text of others made safe to keep: one line, no control or direction-changing characters, bounded in bytes. An attempt's
 * error column, a log and a terminal all show it, so what a receiver answered must not be able to act there.
 */

// Cc also covers NUL, which PostgreSQL cannot store; Cs with the u flag matches only lone surrogates, which no UTF-8 can hold.
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/gu;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

export function oneLine(text: string, bytesMax: number): string {
  // A character is at least one byte: what stands past bytesMax characters cannot be shown anyway.
  const head = text.length > bytesMax ? text.slice(0, bytesMax) : text;
  const safe = head.replace(UNSAFE, escapeCharacter);
  if (head.length === text.length && Buffer.byteLength(safe) <= bytesMax) return safe;
  return `${cutToBytes(safe, bytesMax - 3)}…`;
}

/** The longest start of `text` that fits, never half a character. */
export function cutToBytes(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= bytesMax) return text;
  let end = Math.max(0, bytesMax);
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}

function escapeCharacter(character: string): string {
  return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
