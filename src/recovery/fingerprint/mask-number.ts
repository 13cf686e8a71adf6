/**
 * Words that hold a digit: numbers with their units, dates and times, addresses, uuids, hexadecimal strings, versions and
 * mixed names. Each becomes a typed placeholder; what is written in letters before a number stays ("eth0" is "eth<num>"), so a
 * mask leaves no digit.
 */
import { isDigit, isHexDigit, isLetter } from "./characters.ts";
import { unitOf } from "./units.ts";

function digitsEnd(word: string, at: number): number {
  let end = at;
  while (isDigit(word.charCodeAt(end))) end++;
  return end;
}

/** The end of a number: sign, groups, fraction, exponent; -1 when there is none. */
function numberEnd(word: string): number {
  let at = word[0] === "-" || word[0] === "+" ? 1 : 0;
  if (word[at] === ".") at++;
  let end = digitsEnd(word, at);
  if (end === at) return -1;
  while (word[end] === "." && isDigit(word.charCodeAt(end + 1))) end = digitsEnd(word, end + 1);
  if (word[end] === "e" || word[end] === "E") {
    const sign = word[end + 1] === "-" || word[end + 1] === "+" ? end + 2 : end + 1;
    const exponent = digitsEnd(word, sign);
    if (exponent > sign && exponent === word.length) return exponent;
  }
  return end;
}

function dotsIn(word: string): number {
  let dots = 0;
  for (let i = 0; i < word.length; i++) if (word.charCodeAt(i) === 46) dots++;
  return dots;
}

function isUuid(word: string): boolean {
  if (word.length !== 36) return false;
  for (let i = 0; i < 36; i++) {
    const dash = i === 8 || i === 13 || i === 18 || i === 23;
    if (dash ? word[i] !== "-" : !isHexDigit(word.charCodeAt(i))) return false;
  }
  return true;
}

/** 2024-05-01, 2024-05-01T10:00:00Z, 05/01/2024, 20240501T100000Z: digits, the marks of dates, at most a T and a Z. */
function isDate(word: string): boolean {
  if (word.length < 8 || !isDigit(word.charCodeAt(0))) return false;
  const first = digitsEnd(word, 0);
  const mark = word[first];
  if (mark === "T") return first === 8;
  if (mark !== "-" && mark !== "/" && mark !== ".") return false;
  const second = digitsEnd(word, first + 1);
  if (second === first + 1 || second - first > 3 || word[second] !== mark) return false;
  const third = digitsEnd(word, second + 1);
  const day = third - second - 1;
  if (first === 4) return day > 0 && day <= 2 && (mark !== "." || third === word.length) && tailOfDate(word, third);
  return first <= 2 && (day === 4 || (day === 2 && mark === "/")) && tailOfDate(word, third);
}

function tailOfDate(word: string, at: number): boolean {
  if (at === word.length) return true;
  const mark = word[at];
  return (mark === "T" || mark === ":" || mark === "-" || mark === ".") && isDigit(word.charCodeAt(at + 1));
}

/** All hexadecimal digits, at least one of them a figure: long enough not to be a word. */
function isHex(word: string): boolean {
  if (word.length < 6) return false;
  for (let i = 0; i < word.length; i++) if (!isHexDigit(word.charCodeAt(i))) return false;
  return true;
}

/** Groups of hexadecimal digits with dashes between them, longer than a word: an id of some make. */
function isDashedHex(word: string): boolean {
  if (word.length < 12 || word.indexOf("-", word.indexOf("-") + 1) < 0) return false;
  for (let i = 0; i < word.length; i++) if (word.charCodeAt(i) !== 45 && !isHexDigit(word.charCodeAt(i))) return false;
  return true;
}

function mixed(word: string): string {
  let at = 0;
  let figures = 0;
  let letters = 0;
  let first = -1;
  for (; at < word.length; at++) {
    const code = word.charCodeAt(at);
    if (isDigit(code)) {
      figures++;
      if (first < 0) first = at;
    } else if (isLetter(code)) letters++;
  }
  const head = word.slice(0, first);
  for (at = first; at < word.length && !isLetter(word.charCodeAt(at)); at++);
  if (at === word.length && first > 0) {
    return `${stem(head)}<num>`;
  }
  if (figures <= 2 && letters >= 4) return inline(word);
  const last = word.charCodeAt(first - 1);
  if (first > 2 && !isLetter(last)) return `${head}<id>`;
  return "<id>";
}

/**
 * What stands before the figures, without what belongs to them: the sign in "blk_-12" and the letter in "rack_B12", but not
 * the dash in "node-12".
 */
function stem(head: string): string {
  const last = head.length - 1;
  if (last < 1) return head;
  const joint = !isLetter(head.charCodeAt(last - 1));
  return joint && (head[last] === "-" || (last > 1 && isLetter(head.charCodeAt(last)))) ? head.slice(0, last) : head;
}

/** A name with a figure or two in it: the letters tell more than the figure. */
function inline(word: string): string {
  let out = "";
  let from = 0;
  for (let i = 0; i < word.length; i++) {
    if (!isDigit(word.charCodeAt(i))) continue;
    const end = digitsEnd(word, i);
    out += `${word.slice(from, i)}<num>`;
    from = end;
    i = end - 1;
  }
  return out + word.slice(from);
}

/** A word with a digit and without spaces, quotes, colons or slashes, masked. */
export function maskNumber(word: string): string {
  const code = word.charCodeAt(0);
  if (word.length === 36 && isUuid(word)) return "<uuid>";
  if (code === 48 && (word[1] === "x" || word[1] === "X")) return "<hex>";
  const end = numberEnd(word);
  if (end === word.length) return dotsIn(word) === 3 && isDigit(code) ? "<ip>" : "<num>";
  if (isDate(word)) return "<time>";
  if (end > 0) {
    if (end === word.length - 1 && word[end] === "%") return "<num>";
    const unit = unitOf(word.slice(end), true);
    if (unit !== undefined) return unit;
    let rest = end;
    while (rest < word.length && !isLetter(word.charCodeAt(rest))) rest++;
    if (rest === word.length) return dotsIn(word) >= 3 && word.includes("-") ? "<ip>" : "<num>";
  }
  if (isHex(word)) return "<hex>";
  if (isDashedHex(word)) return "<id>";
  if ((code === 118 || code === 86) && word.length > 2 && isDigit(word.charCodeAt(1)) && dotsIn(word) > 0) return "<version>";
  return mixed(word);
}
