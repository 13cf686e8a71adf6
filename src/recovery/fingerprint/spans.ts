/** Where things end that may hold spaces, brackets or marks: quoted names, urls and the query of a request. Bounded looks ahead. */
import { classOf, DIGIT, LETTER, QUOTE, SPACE } from "./characters.ts";

const QUOTED_CHARS_MAX = 200;
const EQUALS = 61;
const COLON = 58;
const LESS = 60;
const DOUBLE = 34;

/**
 * The end of a quoted name that opens at `start` after `mark`; -1 when it is none. One quoted word is a name, and so is a quoted
 * value after "="; a longer quotation is text and is read like it.
 */
export function quotedNameEnd(text: string, start: number, mark: number): number {
  const code = text.charCodeAt(start);
  const before = classOf(text.charCodeAt(start - 1));
  if (start > 0 && (before === LETTER || before === DIGIT || text[start - 1] === ">")) return -1;
  let spaces = false;
  // Spaces in a row count once, as they are written.
  for (let i = start + 1, most = QUOTED_CHARS_MAX; i < text.length && most > 0; i++) {
    const found = text.charCodeAt(i);
    // A placeholder inside: this was looked at before.
    if (found === LESS) return -1;
    const space = classOf(found) === SPACE;
    if (!space || classOf(text.charCodeAt(i - 1)) !== SPACE) most--;
    if (space) spaces = true;
    if (found !== code) continue;
    const after = classOf(text.charCodeAt(i + 1));
    const inside = code !== DOUBLE && (after === LETTER || after === DIGIT || text[i + 1] === "<");
    if (!inside) return isName(text, i, mark, spaces) ? i + 1 : -1;
  }
  return -1;
}

function isName(text: string, end: number, mark: number, spaces: boolean): boolean {
  if (mark === EQUALS) return true;
  // A member of a JSON object: its name says what it is, and its value may be the error itself.
  return !spaces && mark !== COLON && text[end + 1] !== ":";
}

/** Everything up to a space, a quote or a closing bracket, without the mark that ends a sentence. */
export function urlEnd(text: string, from: number): number {
  let end = from;
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end);
    const kind = classOf(code);
    if (kind === SPACE || kind === QUOTE || code === LESS || code === 62 || code === 41 || code === 93 || code === 125) break;
  }
  const last = text.charCodeAt(end - 1);
  return end > from && (last === 44 || last === 46 || last === 59 || last === COLON) ? end - 1 : end;
}

/** What follows the path of a request up to a space or a quote belongs to it. */
export function queryEnd(text: string, from: number): number {
  let end = from;
  for (; end < text.length; end++) {
    const kind = classOf(text.charCodeAt(end));
    if (kind === SPACE || kind === QUOTE) break;
  }
  return end;
}
