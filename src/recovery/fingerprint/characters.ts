/**
 * Classes of characters for the mask, as a table: one look per character and no expression that could run back. What is not
 * ASCII counts as a letter, except spaces and controls, so a text in any script is made of words.
 */

export const SPACE = 0;
export const LETTER = 1;
export const DIGIT = 2;
/** Stands inside words, numbers, addresses and paths: . _ - / \ @ : # + $ % ~ */
export const JOINT = 3;
export const QUOTE = 4;
export const MARK = 5;

const TABLE = new Uint8Array(128).fill(MARK);
for (let c = 0; c < 128; c++) {
  if (c <= 32 || c === 127) TABLE[c] = SPACE;
  else if ((c >= 65 && c <= 90) || (c >= 97 && c <= 122)) TABLE[c] = LETTER;
  else if (c >= 48 && c <= 57) TABLE[c] = DIGIT;
}
for (const joint of "._-/\\@:#+$%~") TABLE[joint.charCodeAt(0)] = JOINT;
for (const quote of "\"'`") TABLE[quote.charCodeAt(0)] = QUOTE;

/** The class of a UTF-16 unit; NaN (past the end) is a space. */
export function classOf(code: number): number {
  if (code < 128) return TABLE[code] as number;
  if (code < 0xa1 || code === 0x2028 || code === 0x2029 || code === 0xfeff || code === 0x3000) return SPACE;
  if (code >= 0x2000 && code <= 0x200b) return SPACE;
  return code >= 0 ? LETTER : SPACE;
}

export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

export function isHexDigit(code: number): boolean {
  return isDigit(code) || (code >= 97 && code <= 102) || (code >= 65 && code <= 70);
}

export function isUpper(code: number): boolean {
  return code >= 65 && code <= 90;
}

export function isLetter(code: number): boolean {
  return classOf(code) === LETTER;
}
