/**
 * The evidence of one scope: which patterns and values were seen, and what follows from the set of them, in any order. A family is all
 * texts with the same plain words in the same places; families that differ in one word are joined when that place has shown enough.
 */

import { AROUND_PROVEN, type Kind, NAMES, valuesNeeded, wordsNeeded } from "./thresholds.ts";
import { isTelling, type Token, VALUES, VARIABLE } from "./tokens.ts";
import { looksRandom, NEGATIONS } from "./words.ts";

/** I10: values of one place that are remembered; more are never needed. */
const VALUES_MAX = 16;
/** Places past this one are not compared word by word between families. */
const CONTEXT_PLACES_MAX = 32;

class Column {
  readonly values = new Set<string>();
  readonly kinds = new Set<Kind>();
  besideValues: boolean = false;
  open: boolean = false;
}

export class Family {
  readonly words: number;
  /** The family it was joined to. */
  up: Family | undefined;
  /** Places of plain words that turned out to vary, with the words seen there. */
  readonly opened = new Map<number, Set<string>>();
  readonly columns = new Map<number, Column>();
  /** Places that have shown an id, a number or another masked value. */
  readonly idPlaces = new Set<number>();
  /** Names that its own rows have shown, by place, as many as prove that the place varies. */
  readonly names = new Map<number, Set<string>>();

  constructor(tokens: readonly Token[]) {
    this.words = tokens.filter(({ kind }) => kind === "word").length;
  }
}

/** All families that are the same but for one place. */
class Context {
  /** Those whose place holds an id, or a word that looks like one: one as soon as there is an id among them. */
  readonly ids: Family[] = [];
  readonly families: Family[] = [];
  /** Those with a word that says what happened: it takes more to join them. */
  readonly telling: Family[] = [];
  readonly words = new Set<string>();
  besideValues: boolean = false;
  idSeen: boolean = false;
  /** How many names, all else being the same, the place has shown; an address or an id counts for as many as prove something. */
  names = 0;
}

/** What a row changed. */
export interface Change {
  /** Whether it taught something new. */
  news: boolean;
  /** Roots whose templates may read differently now; absorbed ones are named with the root that took them. */
  redrawn: Family[];
  readonly absorbed: (readonly [from: Family, into: Family])[];
}

/** What a map has for a key; made when it has nothing. */
export function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let found = map.get(key);
  if (found === undefined) {
    found = make();
    map.set(key, found);
  }
  return found;
}

export function rootOf(family: Family): Family {
  let root = family;
  while (root.up !== undefined) root = root.up;
  return root;
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash ^ (hash >>> 15);
}

/**
 * A key for each place: the pattern without that place, as one exact integer of two hash lanes, so that contexts need not keep
 * their text. What stands before and after is hashed once for all places.
 */
function contextKeys(pattern: readonly string[], places: number): number[] {
  const hashes = pattern.map(hashOf);
  const after: [number, number][] = [];
  let [a, b] = [0x9e3779b9, pattern.length];
  for (let i = hashes.length - 1; i >= 0; i--) {
    after[i] = [a, b];
    a = Math.imul(a ^ (hashes[i] as number), 0x85ebca6b);
    b = Math.imul(b + (hashes[i] as number), 0xc2b2ae35) ^ (b >>> 13);
  }
  const keys: number[] = [];
  [a, b] = [0x01000193, 0x27d4eb2f];
  for (let i = 0; i < places; i++) {
    const [c, d] = after[i] as [number, number];
    const high = (Math.imul(a ^ i, 0xc2b2ae35) ^ c) >>> 0;
    keys.push(high * 0x200000 + ((Math.imul(b + i, 0x9e3779b1) ^ d) >>> 11));
    a = Math.imul(a ^ (hashes[i] as number), 0x01000193) ^ (a >>> 15);
    b = Math.imul(b + (hashes[i] as number), 0x85ebca6b) ^ (b >>> 13);
  }
  return keys;
}

export class Families {
  private readonly byPattern = new Map<string, Family>();
  private readonly contexts = new Map<number, Context>();

  find(tokens: readonly Token[]): Family | undefined {
    const family = this.byPattern.get(patternOf(tokens).join(" "));
    return family && rootOf(family);
  }

  /** Takes a row as evidence. */
  add(tokens: readonly Token[]): Change {
    const change: Change = { news: false, redrawn: [], absorbed: [] };
    const pattern = patternOf(tokens);
    const key = pattern.join(" ");
    const known = this.byPattern.get(key);
    const family = known ?? new Family(tokens);
    if (known === undefined) {
      change.news = true;
      this.byPattern.set(key, family);
      this.compare(tokens, pattern, family, change);
    }
    this.meetValues(tokens, pattern, family, known === undefined, change);
    const root = rootOf(family);
    tokens.forEach((token, place) => {
      if (token.kind === "word") return;
      const column = columnOf(root, place);
      if (column.open || !put(column, token)) return;
      change.news = true;
      if (openIfReady(column)) change.redrawn.push(root);
    });
    change.redrawn = [...new Set(change.redrawn.map(rootOf))];
    return change;
  }

  /**
   * Looks at the values of a row. Ids without a digit belong to the ids: families that hold an id in one place, or a word there that
   * looks like one, are one. And values prove that their place varies.
   */
  private meetValues(tokens: readonly Token[], pattern: readonly string[], family: Family, isNew: boolean, change: Change): void {
    let keys: number[] | undefined;
    const places = Math.min(tokens.length, CONTEXT_PLACES_MAX);
    for (let place = 0; place < places; place++) {
      const { kind, text } = tokens[place] as Token;
      const isId = VALUES.has(kind);
      const names = namesWith(family, place, kind, text);
      const meets = isId ? !family.idPlaces.has(place) : isNew && kind === "word" && looksRandom(text);
      if (names === 0 && !meets) continue;
      if (isId) family.idPlaces.add(place);
      change.news ||= names > 0 || isId;
      const wordsAround = family.words - (kind === "word" ? 1 : 0);
      if (wordsAround < 1) continue;
      keys ??= contextKeys(pattern, places);
      const context = entry(this.contexts, keys[place] as number, () => new Context());
      if (names > context.names) {
        context.names = names;
        this.joinIfReady(context, wordsAround, place, change);
      }
      if (!meets) continue;
      context.ids.push(family);
      context.idSeen ||= isId;
      if (!context.idSeen || context.ids.length < 2) continue;
      for (const other of context.ids) join(family, other, place, [text], change.absorbed);
      context.ids.length = 1;
      change.redrawn.push(family);
    }
  }

  /** Looks at every place of a new family: do enough families differ from it there and nowhere else? */
  private compare(tokens: readonly Token[], pattern: readonly string[], family: Family, change: Change): void {
    const places = Math.min(tokens.length, CONTEXT_PLACES_MAX);
    const keys = contextKeys(pattern, places);
    for (let place = 0; place < places; place++) {
      const isWord = tokens[place]?.kind === "word";
      const wordsAround = isWord ? family.words - 1 : family.words;
      if (wordsAround < 1 || (isWord && NEGATIONS.has(pattern[place] as string))) continue;
      const context = entry(this.contexts, keys[place] as number, () => new Context());
      context.words.add(pattern[place] as string);
      (isWord && isTelling(tokens, place) ? context.telling : context.families).push(family);
      if (!isWord) context.besideValues = true;
      this.joinIfReady(context, wordsAround, place, change);
    }
  }

  private joinIfReady(context: Context, wordsAround: number, place: number, { absorbed, redrawn }: Change): void {
    const { families, telling, words, besideValues } = context;
    if (words.size >= wordsNeeded(wordsAround, besideValues)) context.names = NAMES.many;
    else if (wordsAround < AROUND_PROVEN) return;
    if (context.names < NAMES.some) return;
    if (context.names >= NAMES.many) families.push(...telling.splice(0));
    const [first, ...others] = families;
    if (first === undefined || others.length === 0) return;
    for (const other of others) join(first, other, place, words, absorbed);
    families.length = 1;
    redrawn.push(first);
  }
}

/** How many names the place has shown with this one, in the rows of this family alone; 0 if that is nothing new. */
function namesWith({ names }: Family, place: number, kind: Kind, name: string): number {
  if (kind === "word" || (VALUES.has(kind) && kind !== "sure")) return 0;
  const seen = entry(names, place, () => new Set());
  if (seen.size >= NAMES.many || seen.has(name)) return 0;
  seen.add(name);
  return seen.has(VARIABLE) ? Math.max(seen.size, NAMES.some) : seen.size;
}

function patternOf(tokens: readonly Token[]): string[] {
  return tokens.map(({ kind, text }) => (kind === "word" ? text : VARIABLE));
}

function columnOf(root: Family, place: number): Column {
  return entry(root.columns, place, () => new Column());
}

/** Whether the value or its kind was new there. */
function put(column: Column, { kind, text }: Token): boolean {
  const before = column.values.size + column.kinds.size;
  if (column.values.size < VALUES_MAX) column.values.add(text);
  if (text === VARIABLE) column.besideValues = true;
  else column.kinds.add(kind);
  return column.values.size + column.kinds.size > before;
}

/** Opens a column that has shown enough; says whether it did so now. */
function openIfReady(column: Column): boolean {
  if (column.open || column.kinds.size === 0) return false;
  column.open = column.values.size >= valuesNeeded(column.kinds, column.besideValues);
  return column.open;
}

function join(a: Family, b: Family, place: number, words: Iterable<string>, absorbed: Change["absorbed"]): void {
  open(rootOf(a), place, words);
  if (rootOf(a) !== rootOf(b)) absorbed.push(unite(a, b));
}

/** Everything that the second has shown counts for the first from now on. */
export function unite(a: Family, b: Family): readonly [from: Family, into: Family] {
  const [from, into] = [rootOf(b), rootOf(a)];
  from.up = into;
  for (const [at, seen] of from.opened) open(into, at, seen);
  for (const [at, theirs] of from.columns) {
    const ours = columnOf(into, at);
    for (const value of theirs.values) if (ours.values.size < VALUES_MAX) ours.values.add(value);
    for (const kind of theirs.kinds) ours.kinds.add(kind);
    ours.besideValues ||= theirs.besideValues;
    ours.open ||= theirs.open;
    openIfReady(ours);
  }
  return [from, into];
}

function open(family: Family, place: number, words: Iterable<string>): void {
  const seen = entry(family.opened, place, () => new Set());
  for (const word of words) if (seen.size < VALUES_MAX) seen.add(word);
}

/** A row as its family reads it now: what varies is "<*>". */
export function templateOf(root: Family, tokens: readonly Token[]): string {
  const varies = (place: number): boolean => root.opened.has(place) || root.columns.get(place)?.open === true;
  return tokens.map(({ text }, place) => (varies(place) ? VARIABLE : text)).join(" ");
}

/** The values that a place has shown, for an explanation. */
export function valuesAt(root: Family, place: number): string[] {
  const values = new Set([...(root.opened.get(place) ?? []), ...(root.columns.get(place)?.values ?? [])]);
  values.delete(VARIABLE);
  return [...values].sort();
}
