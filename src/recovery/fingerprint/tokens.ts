/**
 * A masked text as a row of tokens for the learner. Placeholders become "<*>", lists of values become one value, marks are left
 * out, and each remaining word says how readily it may turn out to be a value: a word of a sentence hardly, a name after "user" at once.
 */
import { endOf, hasLetter, SPACE_CLASS, wordSet } from "./characters.ts";
import { PLACEHOLDER } from "./mask.ts";
import { KINDS, type Kind } from "./thresholds.ts";
import { CAUSES, isFunctionWord, isName, isParticiple, isShaped, mayBeName, NOUNS, PREPOSITIONS, saysWhat } from "./words.ts";

export const VARIABLE = "<*>";

export interface Token {
  readonly kind: Kind;
  readonly text: string;
}

/** I10: longer texts are cut here; what follows does not take part in the grouping. */
const TOKENS_MAX = 64;
const TOKEN_CHARS_MAX = 128;

/** Placeholders that stand for what no sentence has: a word in their place is a name. */
const SURE = wordSet("<ip> <host> <uuid> <hex> <url> <email> <id>");
const IS_PLACEHOLDER = new RegExp(`^(?:<\\*>|${PLACEHOLDER})$`);
const PLACEHOLDERS = new RegExp(PLACEHOLDER, "g");

/** Letters, digits and joints but the colon. A placeholder that touches them is a part of their word. */
const PLAIN = `[^${SPACE_CLASS}"'\`!&()*,:;<=>?[\\]^{|}]*`;
const WORD = new RegExp(`${PLAIN}(?:${PLACEHOLDER}${PLAIN})*`, "y");
const AROUND = /^[^A-Za-z\u0080-\uffff<]+|[^A-Za-z\u0080-\uffff>]+$/g;
/** "node-[<num>-<num> <num>]" is one name: the bracket belongs to the word whose dash it touches. */
const RANGE = /(?<=[-_])\[(?=<)[^\]]{0,398}\]/y;

interface Raw {
  readonly text: string;
  /** The last mark before it, spaces left out, and the character right after it. */
  readonly before: string;
  readonly after: string;
}

const EMPTY_VALUE: Raw = { text: VARIABLE, before: "=", after: "" };

/** Words and placeholders with the marks around them. */
function split(masked: string): Raw[] {
  const out: Raw[] = [];
  let mark = "";
  let at = 0;
  while (at < masked.length && out.length < TOKENS_MAX * 4) {
    const end = endOf(WORD, masked, at);
    if (end === at) {
      if (masked[at] !== " ") {
        if (mark === "=" && masked[at] !== "=") out.push(EMPTY_VALUE);
        mark = masked[at] as string;
      }
      at++;
      continue;
    }
    const range = endOf(RANGE, masked, end);
    const text =
      range > 0 ? `${masked.slice(at, end)}<num>` : masked.slice(at, Math.min(end, at + TOKEN_CHARS_MAX)).replace(AROUND, "");
    const next = Math.max(end, range);
    // "rhost= user=root": nothing was written after the first "=", and the next word is a name with its own value.
    if (mark === "=" && masked.endsWith("= ", at) && masked[next] === "=") out.push(EMPTY_VALUE);
    if (text !== "") {
      out.push({ text, before: mark, after: masked[next] ?? "" });
      mark = "";
    }
    at = next;
  }
  if (mark === "=") out.push(EMPTY_VALUE);
  return out;
}

/** "node-<num>" and "node-<id>" are names of the same make. */
function stems(text: string): string {
  return text.replace(PLACEHOLDERS, VARIABLE);
}

function isPlaceholder(text: string): boolean {
  return IS_PLACEHOLDER.test(text);
}

function kindOf({ text, before, after }: Raw, previous: Raw | undefined, next: Raw | undefined, position: number): Kind {
  if (isPlaceholder(text)) return SURE.has(text) ? "sure" : "any";
  if (text.includes("<")) return hasLetter(stems(text)) ? "id" : "any";
  const valueFollows = next !== undefined && isPlaceholder(next.text);
  if (after === "(") return previous !== undefined && valueFollows ? "call" : "word";
  if (after === "=" || saysWhat(text)) return "word";
  const bracketed = isOpening(before);
  const lead = previous?.text.toLowerCase() ?? "";
  const ends = next === undefined || after !== " " || next.before !== "" || PREPOSITIONS.has(next.text);
  if (NOUNS.has(lead) && (before === "" || bracketed) && mayBeName(text)) {
    const left = ends || valueFollows || isFunctionWord(next.text) || isParticiple(next.text);
    if (position > 1 && (left || isShaped(text))) return "entity";
    if (left && next !== undefined) return "slot";
  }
  if (isName(text) || (after === "[" && valueFollows)) return "name";
  if (after === ":") return "word";
  if (before === "=") return CAUSES.has(lead) ? "word" : "value";
  if (!mayBeName(text)) return "word";
  if (bracketed) return ")]}".includes(after) ? "remark" : "word";
  return before === "" && ends && next !== undefined && position > 1 && PREPOSITIONS.has(lead) ? "slot" : "word";
}

function isOpening(mark: string): boolean {
  return mark !== "" && "([{".includes(mark);
}

/** Whether the word at `place` says what happened, so that a sentence with another word there is another one. */
export function isTelling(tokens: readonly Token[], place: number): boolean {
  const { text } = tokens[place] as Token;
  const lead = tokens[place - 1]?.text.toLowerCase() ?? "";
  return CAUSES.has(lead) || isFunctionWord(text) || text.endsWith("ed") || saysWhat(text);
}

/** What the mask hid, whole or in part. */
export const VALUES: ReadonlySet<Kind> = new Set<Kind>(["any", "sure", "id", "stem"]);

interface Placed extends Token {
  readonly before: string;
}

/**
 * Values that stand side by side are one list, however long: it counts as its first member that has letters. A value in
 * brackets after a name or a value is a remark ("18846 bytes (18.4 KB)", "db1 [10.0.0.7]") and counts as nothing.
 */
function collapse(tokens: Placed[]): Token[] {
  const out: Placed[] = [];
  for (const token of tokens) {
    const last = out[out.length - 1];
    if (last === undefined || !VALUES.has(token.kind)) out.push(token);
    else if (VALUES.has(last.kind)) {
      if (last.kind !== "id" && token.kind !== "any") out[out.length - 1] = token;
    } else if (token.before === "" && (last.kind === "entity" || last.kind === "slot")) continue;
    else if (last.kind === "word" || !isOpening(token.before)) out.push(token);
    else if (last.kind === "value") out[out.length - 1] = { ...last, kind: "id", text: `${last.text}${VARIABLE}` };
  }
  return out;
}

export function tokenise(masked: string): Token[] {
  const raws = split(masked);
  const tokens = collapse(
    raws.map((raw, i) => {
      const kind = kindOf(raw, raws[i - 1], raws[i + 1], i);
      const text = kind === "any" || kind === "sure" ? VARIABLE : kind === "id" ? stems(raw.text) : raw.text;
      return { kind, text, before: raw.before };
    }),
  ).slice(0, TOKENS_MAX);
  const words = tokens.filter(({ kind }) => kind === "word").length;
  return tokens.map(({ kind, text }) => {
    if (kind === "id" && words >= KINDS.stem[1]) return { kind: "stem", text };
    return { kind: words < KINDS[kind][1] ? "word" : kind, text };
  });
}
