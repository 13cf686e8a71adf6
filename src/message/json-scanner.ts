/**
 * Cuts the exact source text of a payload out of a request body (I8: the bytes that were accepted are the bytes that are
 * delivered), because JSON.parse loses big integers, duplicate keys and escapes. It validates every character against the
 * JSON grammar without recursion, so that no nesting can exhaust the stack, and stops at a stated depth.
 */
import { type ErrorCode, MakegoodError } from "./errors.ts";
import { LIMITS } from "./limits.ts";

/** A place in a text. `code` is what a malformed text is called where it was found. */
export interface Cursor {
  readonly text: string;
  at: number;
  code: ErrorCode;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const PLUS = 0x2b;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const LOWER_E = 0x65;

/** Most strings end before this, and by hand they are quicker. */
const SHORT_CHARS = 32;
/** What ends a run of plain characters in a string. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters may not stand in a string
const STOP = /["\\\u0000-\u001f]/g;
/**
 * Escapes, each with a few plain characters behind it: texts that are all escapes (a million quotes, line breaks or \u0001) are read
 * many at a time. Bounded, because an expression keeps an entry to come back to for each of them.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters may not stand in a string
const ESCAPES = /(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]{0,64}){1,64}/y;
const WORDS: readonly string[] = ["true", "false", "null"];

export function cursorOn(text: string, code: ErrorCode): Cursor {
  return { text, at: 0, code };
}

/** Skips one whole value, whatever it is, and returns its exact text without the whitespace around it. */
export function takeValue(cursor: Cursor, depthMax: number = LIMITS.payloadDepthMax): string {
  skipSpace(cursor);
  const start = cursor.at;
  skipValue(cursor, depthMax);
  return cursor.text.slice(start, cursor.at);
}

/** Walks one object; `onMember` must consume the value behind each key. False when the next value is not an object. */
export function eachMember(cursor: Cursor, onMember: (key: string) => void): boolean {
  return eachPart(cursor, OPEN_OBJECT, CLOSE_OBJECT, () => onMember(takeKey(cursor)));
}

/** Walks one array; `onElement` must consume each element. False when the next value is not an array. */
export function eachElement(cursor: Cursor, onElement: (index: number) => void): boolean {
  return eachPart(cursor, OPEN_ARRAY, CLOSE_ARRAY, onElement);
}

function eachPart(cursor: Cursor, open: number, close: number, onPart: (index: number) => void): boolean {
  skipSpace(cursor);
  if (peek(cursor) !== open) return false;
  cursor.at++;
  skipSpace(cursor);
  if (peek(cursor) === close) {
    cursor.at++;
    return true;
  }
  for (let index = 0; ; index++) {
    onPart(index);
    skipSpace(cursor);
    const next = peek(cursor);
    cursor.at++;
    if (next === close) return true;
    if (next !== COMMA) throw malformed(cursor, cursor.at - 1);
  }
}

/** Nothing but whitespace may follow. */
export function expectEnd(cursor: Cursor): void {
  skipSpace(cursor);
  if (cursor.at < cursor.text.length) throw malformed(cursor, cursor.at);
}

/** Throws unless the whole text is one JSON value within the depth. */
export function checkJson(text: string, code: ErrorCode): void {
  const cursor = cursorOn(text, code);
  takeValue(cursor);
  expectEnd(cursor);
}

function skipValue(cursor: Cursor, depthMax: number): void {
  // One entry per open container: what closes it. Bounded by depthMax, so an attacker cannot make it grow.
  const closers: number[] = [];
  for (;;) {
    if (openOrScalar(cursor, closers, depthMax)) continue;
    // A value has ended: close what ends here, or go on to the next one.
    for (;;) {
      const closer = closers.at(-1);
      if (closer === undefined) return;
      skipSpace(cursor);
      const next = peek(cursor);
      if (next === closer) {
        cursor.at++;
        closers.pop();
      } else if (next === COMMA) {
        cursor.at++;
        if (closer === CLOSE_OBJECT) skipKey(cursor);
        break;
      } else {
        throw malformed(cursor, cursor.at);
      }
    }
  }
}

/** True when a container was opened and its first value comes next; false when a whole value has been skipped. */
function openOrScalar(cursor: Cursor, closers: number[], depthMax: number): boolean {
  skipSpace(cursor);
  const first = peek(cursor);
  if (first === QUOTE) {
    skipString(cursor);
    return false;
  }
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) {
    skipScalar(cursor);
    return false;
  }
  if (closers.length >= depthMax) {
    throw new MakegoodError("invalid_payload", `nested deeper than ${depthMax} levels (at character ${cursor.at})`, {
      depthMax,
      at: cursor.at,
    });
  }
  const closer = first === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY;
  cursor.at++;
  skipSpace(cursor);
  if (peek(cursor) === closer) {
    cursor.at++;
    return false;
  }
  closers.push(closer);
  if (closer === CLOSE_OBJECT) skipKey(cursor);
  return true;
}

function skipKey(cursor: Cursor): void {
  skipSpace(cursor);
  skipString(cursor);
  skipSpace(cursor);
  if (peek(cursor) !== COLON) throw malformed(cursor, cursor.at);
  cursor.at++;
}

/** Keys are compared as what they mean, not as how they are spelled: `"p\u0061yload"` is `payload`. */
function takeKey(cursor: Cursor): string {
  skipSpace(cursor);
  const start = cursor.at;
  skipString(cursor);
  const plain = cursor.text.slice(start + 1, cursor.at - 1);
  const key = plain.includes("\\") ? (JSON.parse(`"${plain}"`) as string) : plain;
  skipSpace(cursor);
  if (peek(cursor) !== COLON) throw malformed(cursor, cursor.at);
  cursor.at++;
  return key;
}

function skipString(cursor: Cursor): void {
  const { text } = cursor;
  if (peek(cursor) !== QUOTE) throw malformed(cursor, cursor.at);
  let at = cursor.at + 1;
  const short = at + SHORT_CHARS;
  for (;;) {
    if (at >= short) {
      STOP.lastIndex = at;
      at = STOP.test(text) ? STOP.lastIndex - 1 : text.length;
    }
    const char = text.charCodeAt(at);
    if (char === QUOTE) break;
    if (char === BACKSLASH) {
      ESCAPES.lastIndex = at;
      if (!ESCAPES.test(text)) throw malformed(cursor, at);
      at = ESCAPES.lastIndex;
    } else if (char >= 0x20) {
      at++;
    } else {
      // A raw control character, or NaN: the text ended inside the string.
      throw malformed(cursor, at);
    }
  }
  cursor.at = at + 1;
}

function skipScalar(cursor: Cursor): void {
  const first = peek(cursor);
  if (first === MINUS || isDigit(first)) {
    skipNumber(cursor);
    return;
  }
  const word = WORDS.find((candidate) => cursor.text.startsWith(candidate, cursor.at));
  if (word === undefined) throw malformed(cursor, cursor.at);
  cursor.at += word.length;
}

/** By hand: a regular expression keeps a backtracking entry per digit, and a number may be as long as the body. */
function skipNumber(cursor: Cursor): void {
  if (peek(cursor) === MINUS) cursor.at++;
  if (peek(cursor) === ZERO) cursor.at++;
  else skipDigits(cursor);
  if (peek(cursor) === DOT) {
    cursor.at++;
    skipDigits(cursor);
  }
  if ((peek(cursor) | 0x20) === LOWER_E) {
    cursor.at++;
    if (peek(cursor) === PLUS || peek(cursor) === MINUS) cursor.at++;
    skipDigits(cursor);
  }
}

function skipDigits(cursor: Cursor): void {
  const start = cursor.at;
  while (isDigit(peek(cursor))) cursor.at++;
  if (cursor.at === start) throw malformed(cursor, start);
}

function isDigit(char: number): boolean {
  return char >= ZERO && char <= 0x39;
}

function skipSpace(cursor: Cursor): void {
  const { text } = cursor;
  let at = cursor.at;
  for (;;) {
    const char = text.charCodeAt(at);
    if (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09) break;
    at++;
  }
  cursor.at = at;
}

function peek(cursor: Cursor): number {
  return cursor.text.charCodeAt(cursor.at);
}

function malformed(cursor: Cursor, at: number): MakegoodError {
  const found = at >= cursor.text.length ? "the text ends" : `unexpected ${JSON.stringify(cursor.text.charAt(at))}`;
  return new MakegoodError(cursor.code, `not valid JSON: ${found} at character ${at}`, { at });
}
