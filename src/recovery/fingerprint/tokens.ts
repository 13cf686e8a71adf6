/**
 * A masked text as a row of tokens for the learner. Placeholders become "<*>", lists of values become one value, marks are left
 * out, and each remaining word says how readily it may turn out to be a value: a word of a sentence hardly, a name after "user" at once.
 */
import { classOf, DIGIT, isLetter, isUpper, JOINT, LETTER } from "./characters.ts";
import { placeholderAt } from "./placeholders.ts";
import { KINDS, type Kind } from "./thresholds.ts";

export const VARIABLE = "<*>";

export interface Token {
  readonly kind: Kind;
  readonly text: string;
}

/** I10: longer texts are cut here; what follows does not take part in the grouping. */
export const TOKENS_MAX = 64;
const TOKEN_CHARS_MAX = 128;
const RANGE_CHARS_MAX = 400;
const COLON = 58;

const set = (text: string): ReadonlySet<string> => new Set(text.split(" "));
/** What a name follows: "user ann", "thread main". */
const NOUNS = set(
  "user username account tenant customer owner member operator host hostname node server client peer machine device interface driver disk " +
    "volume partition package process program thread daemon service module plugin component class bean job task queue topic channel bucket " +
    "table database schema index cluster container pod image namespace region zone domain realm source",
);
/** What follows such a noun and makes one thing of the two: "host key", "thread pool". */
const PARTS = set(
  "name names key keys id ids type mode pool table tables system space list group password address count limit quota size state status error " +
    "errors info data file files path port stack manager level version session connection request response access agent code",
);
/** Not "to": a verb follows it as often as a name. */
const PREPOSITIONS = set("for from by at on in of with via");
const LITTLE = set(
  "a an the this that these those all any some no not each every its their your my our to and or but if then than as be been is was are were " +
    "has had have will would can could cannot may must did does do because while when after before since until into within without during through",
);
/** Placeholders that stand for what no sentence has: a word in their place is a name. */
const SURE = set("<ip> <host> <uuid> <hex> <url> <email> <id>");

/** Never a name, and never one of many values. */
export function isFunctionWord(text: string): boolean {
  return PREPOSITIONS.has(text) || LITTLE.has(text);
}

/** The words after these are the cause itself. */
const CAUSES = set(
  "error code status reason cause exception failure result state signal errno with returned answered returns because due",
);
export const NEGATIONS = set("no not never none cannot without");

/** Whether the word at `place` says what happened, so that a sentence with another word there is another one. */
export function isTelling(tokens: readonly Token[], place: number): boolean {
  const { text } = tokens[place] as Token;
  const lead = tokens[place - 1]?.text.toLowerCase() ?? "";
  return CAUSES.has(lead) || isFunctionWord(text) || text.endsWith("ed") || saysWhat(text);
}

interface Raw {
  text: string;
  /** The last mark before it, spaces left out, and the character right after it. */
  before: string;
  after: string;
}

function isWordCode(code: number): boolean {
  const kind = classOf(code);
  return kind === LETTER || kind === DIGIT || (kind === JOINT && code !== COLON);
}

function trim(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && !isLetter(text.charCodeAt(from)) && text[from] !== "<") from++;
  while (to > from && !isLetter(text.charCodeAt(to - 1)) && text[to - 1] !== ">") to--;
  return text.slice(from, to);
}

/** Words and placeholders with the marks around them. A placeholder that touches letters is a part of their word. */
function split(masked: string): Raw[] {
  const out: Raw[] = [];
  let mark = "";
  let at = 0;
  while (at < masked.length && out.length < TOKENS_MAX * 4) {
    let end = at;
    while (end < masked.length) {
      if (isWordCode(masked.charCodeAt(end))) end++;
      else if (masked[end] === "<") {
        const found = placeholderAt(masked, end);
        if (found === undefined) break;
        end += found.length;
      } else break;
    }
    if (end === at) {
      if (masked[at] !== " ") {
        if (mark === "=" && masked[at] !== "=") out.push(emptyValue());
        mark = masked[at] as string;
      }
      at++;
      continue;
    }
    let text = trim(masked.slice(at, Math.min(end, at + TOKEN_CHARS_MAX)));
    const range = rangeEnd(masked, end);
    if (range > end) {
      text = `${masked.slice(at, end)}<num>`;
      end = range;
    }
    // "rhost= user=root": nothing was written after the first "=", and the next word is a name with its own value.
    if (mark === "=" && masked[at - 1] === " " && masked[at - 2] === "=" && masked[end] === "=") out.push(emptyValue());
    if (text !== "") out.push({ text, before: mark, after: masked[end] ?? "" });
    mark = text === "" ? mark : "";
    at = end;
  }
  if (mark === "=") out.push(emptyValue());
  return out;
}

/** "node-[<num>-<num> <num>]" is one name: the bracket belongs to the word whose dash it touches. */
function rangeEnd(masked: string, end: number): number {
  const dash = masked[end - 1];
  if (masked[end] !== "[" || (dash !== "-" && dash !== "_") || masked[end + 1] !== "<") return end;
  const close = masked.slice(end, end + RANGE_CHARS_MAX).indexOf("]");
  return close < 0 ? end : end + close + 1;
}

function emptyValue(): Raw {
  return { text: VARIABLE, before: "=", after: "" };
}

function isPlaceholder(text: string): boolean {
  return text === VARIABLE || (text[0] === "<" && placeholderAt(text, 0) === text);
}

function kindOf(raw: Raw, previous: Raw | undefined, next: Raw | undefined, position: number): Kind {
  const { text, before, after } = raw;
  if (isPlaceholder(text)) return SURE.has(text) ? "sure" : "any";
  if (text.includes("<")) return hasLetter(stems(text)) ? "id" : "any";
  if (after === "(") return previous !== undefined && next !== undefined && isPlaceholder(next.text) ? "call" : "word";
  if (after === "=" || saysWhat(text)) return "word";
  const bracketed = "([{".includes(before) && before !== "";
  const lead = previous?.text.toLowerCase() ?? "";
  const ends = next === undefined || after !== " " || next.before !== "" || PREPOSITIONS.has(next.text);
  if (NOUNS.has(lead) && (before === "" || bracketed) && mayBeName(text)) {
    const left = ends || isPlaceholder(next.text) || isFunctionWord(next.text) || isParticiple(next.text);
    if (position > 1 && (left || isShaped(text))) return "entity";
    if (left && next !== undefined) return "slot";
  }
  if (isName(text) || (after === "[" && next !== undefined && isPlaceholder(next.text))) return "name";
  if (after === ":") return "word";
  if (before === "=") return CAUSES.has(lead) ? "word" : "value";
  if (!mayBeName(text)) return "word";
  if (bracketed) return ")]}".includes(after) ? "remark" : "word";
  return before === "" && ends && next !== undefined && position > 1 && PREPOSITIONS.has(lead) ? "slot" : "word";
}

function mayBeName(text: string): boolean {
  return !isUpper(text.charCodeAt(1)) && !isFunctionWord(text) && !PARTS.has(text) && !isParticiple(text);
}

/** Written as no word of a sentence is: with a joint or a capital inside. */
function isShaped(text: string): boolean {
  for (let i = 1; i < text.length - 1; i++) if (!isLetter(text.charCodeAt(i)) || isUpper(text.charCodeAt(i))) return true;
  return false;
}

function hasLetter(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (isLetter(text.charCodeAt(i))) return true;
  return false;
}

/** The class of an error and a constant of a program (SCREEN_ON, FAILED) say what happened, however many there are. */
function saysWhat(text: string): boolean {
  if (text.endsWith("Exception") || text.endsWith("Error") || text.endsWith("Failure") || text.endsWith("Fault")) return true;
  let at = text.length - 1;
  while (at >= 0 && (isUpper(text.charCodeAt(at)) || text[at] === "_")) at--;
  return text.length - at > 2 && (at < 0 || !isLetter(text.charCodeAt(at)));
}

/** Dotted and slashed names: classes, packages, files. */
function isName(text: string): boolean {
  for (let i = 1; i < text.length - 1; i++) {
    const code = text.charCodeAt(i);
    if (code === 46 || code === 36 || code === 47 || code === 92 || code === 64) return true;
  }
  return false;
}

function isParticiple(text: string): boolean {
  return text.endsWith("ed") || text.endsWith("ing");
}

/** "node-<num>" and "node-<id>" are names of the same make. */
function stems(text: string): string {
  let out = "";
  for (let at = 0; at < text.length; ) {
    const found = text[at] === "<" ? placeholderAt(text, at) : undefined;
    out += found === undefined ? text[at] : VARIABLE;
    at += found?.length ?? 1;
  }
  return out;
}

interface Placed extends Token {
  readonly before: string;
}

/** What the mask hid, whole or in part. */
export const VALUES: ReadonlySet<Kind> = new Set<Kind>(["any", "sure", "id", "stem"]);

const isValue = (token: Token | undefined): boolean => token !== undefined && VALUES.has(token.kind);

/**
 * Values that stand side by side are one list, however long: it counts as its first member that has letters. A value in
 * brackets after a name or a value is a remark ("18846 bytes (18.4 KB)", "db1 [10.0.0.7]") and counts as nothing.
 */
function collapse(tokens: Placed[]): Token[] {
  const out: Placed[] = [];
  for (const token of tokens) {
    const last = out[out.length - 1];
    if (last === undefined || !isValue(token)) out.push(token);
    else if (isValue(last)) {
      if (last.kind !== "id" && token.kind !== "any") out[out.length - 1] = token;
    } else if (token.before === "" && (last.kind === "entity" || last.kind === "slot")) continue;
    else if (last.kind === "word" || !"([{".includes(token.before) || token.before === "") out.push(token);
    else if (last.kind === "value") out[out.length - 1] = { ...last, kind: "id", text: `${last.text}${VARIABLE}` };
  }
  return out;
}

export function tokenise(masked: string): Token[] {
  const raws = split(masked);
  const tokens = collapse(
    raws.map((raw, i) => {
      const kind = kindOf(raw, raws[i - 1], raws[i + 1], i);
      return {
        kind,
        text: kind === "any" || kind === "sure" ? VARIABLE : kind === "id" ? stems(raw.text) : raw.text,
        before: raw.before,
      };
    }),
  ).slice(0, TOKENS_MAX);
  const words = tokens.filter(({ kind }) => kind === "word").length;
  return tokens.map(({ kind, text }) => {
    if (kind === "id" && words >= KINDS.stem[1]) return { kind: "stem", text };
    return { kind: words < KINDS[kind][1] ? "word" : kind, text };
  });
}
