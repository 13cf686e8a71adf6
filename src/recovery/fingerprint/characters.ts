/** Classes of characters as a table. What is not ASCII counts as a letter, except spaces and controls: any script has words. */
export const SPACE = 0;
export const LETTER = 1;
export const DIGIT = 2;
/** Stands inside words, numbers, addresses and paths. */
export const JOINT = 3;
export const QUOTE = 4;
export const MARK = 5;

const SPACES = [
  [0, 0x20],
  [0x7f, 0xa0],
  [0x2000, 0x200b],
  [0x2028, 0x2029],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
] as const;

const TABLE = new Uint8Array(0x10000).fill(LETTER).fill(MARK, 0x21, 0x7f);
TABLE.fill(DIGIT, 0x30, 0x3a).fill(LETTER, 0x41, 0x5b).fill(LETTER, 0x61, 0x7b);
for (const [from, to] of SPACES) TABLE.fill(SPACE, from, to + 1);
for (const joint of "._-/\\@:#+$%~") TABLE[joint.charCodeAt(0)] = JOINT;
for (const quote of "\"'`") TABLE[quote.charCodeAt(0)] = QUOTE;

/** The class of a UTF-16 unit; NaN (past the end) is a space. */
export function classOf(code: number): number {
  return code >= 0 ? (TABLE[code] as number) : SPACE;
}

const escaped = (code: number): string => `\\u${code.toString(16).padStart(4, "0")}`;
/** The same for expressions: what stands inside their brackets. */
export const SPACE_CLASS = SPACES.map(([from, to]) => `${escaped(from)}-${escaped(to)}`).join("");

/** Of a single word, where nothing is a space. */
export function hasLetter(word: string): boolean {
  return /[A-Za-z\u0080-\uffff]/.test(word);
}

/** Where a sticky expression that begins at `at` ends; -1: it does not fit. None of ours runs back further than a few characters. */
export function endOf(expression: RegExp, text: string, at: number): number {
  expression.lastIndex = at;
  return expression.test(text) ? expression.lastIndex : -1;
}

export const wordSet = (words: string): ReadonlySet<string> => new Set(words.split(" "));
