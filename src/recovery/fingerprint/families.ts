/**
 * The evidence of one scope: which patterns were seen, which values in which of their places, and what follows from it. A family
 * is all texts with the same plain words in the same places; families that differ in one word are joined when that place
 * has shown enough words. What it concludes depends on the set of rows it was given, not on their order.
 */
import { looksRandom } from "./random-word.ts";
import { AROUND_PROVEN, type Kind, NAMES, valuesNeeded, wordsNeeded } from "./thresholds.ts";
import { isTelling, NEGATIONS, type Token, VALUES, VARIABLE } from "./tokens.ts";

/** I10: values of one place that are remembered; more are never needed. */
const VALUES_MAX = 16;
/** Places past this one are not compared word by word between families. */
const CONTEXT_PLACES_MAX = 32;

interface Column {
  readonly values: Set<string>;
  readonly kinds: Set<Kind>;
  besideValues: boolean;
  open: boolean;
}

export interface Family {
  readonly words: number;
  /** The family it was joined to. */
  up: Family | undefined;
  /** Places of plain words that turned out to vary, with the words seen there. */
  readonly opened: Map<number, Set<string>>;
  readonly columns: Map<number, Column>;
  /** Places that have shown an id, a number or another masked value. */
  readonly idPlaces: Set<number>;
  /** Names that its own rows have shown, by place, as many as prove that the place varies. */
  readonly names: Map<number, Set<string>>;
}

interface Context {
  /** Those whose place holds an id, or a word that looks like one: one as soon as there is an id among them. */
  readonly ids: Family[];
  readonly families: Family[];
  /** Those with a word that says what happened: it takes more to join them. */
  readonly telling: Family[];
  readonly words: Set<string>;
  besideValues: boolean;
  idSeen: boolean;
  /** How many names, all else being the same, the place has shown; an address or an id counts for as many as prove something. */
  names: number;
}

/** What a row changed. */
export interface Change {
  /** Whether it taught something new. */
  news: boolean;
  /** Roots whose templates may read differently now; absorbed ones are named with the root that took them. */
  redrawn: Family[];
  readonly absorbed: (readonly [from: Family, into: Family])[];
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
    keys.push((Math.imul(a ^ i, 0xc2b2ae35) ^ c) >>> 0);
    keys[i] = (keys[i] as number) * 0x200000 + ((Math.imul(b + i, 0x9e3779b1) ^ d) >>> 11);
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
    return family === undefined ? undefined : rootOf(family);
  }

  /** Takes a row as evidence. */
  add(tokens: readonly Token[]): Change {
    const change: Change = { news: false, redrawn: [], absorbed: [] };
    const pattern = patternOf(tokens);
    const key = pattern.join(" ");
    const known = this.byPattern.get(key);
    const family = known ?? newFamily(tokens);
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

  /** Two families whose rows read alike are one from now on; says which was absorbed. */
  unite(a: Family, b: Family): readonly [from: Family, into: Family] {
    const [into, from] = [rootOf(a), rootOf(b)];
    absorb(from, into);
    return [from, into];
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
      const context = this.contextOf(keys[place] as number);
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

  private contextOf(key: number): Context {
    let context = this.contexts.get(key);
    if (context === undefined) {
      context = { ids: [], families: [], telling: [], words: new Set(), besideValues: false, idSeen: false, names: 0 };
      this.contexts.set(key, context);
    }
    return context;
  }

  /** Looks at every place of a new family: do enough families differ from it there and nowhere else? */
  private compare(tokens: readonly Token[], pattern: readonly string[], family: Family, change: Change): void {
    const places = Math.min(tokens.length, CONTEXT_PLACES_MAX);
    const keys = contextKeys(pattern, places);
    for (let place = 0; place < places; place++) {
      const isWord = tokens[place]?.kind === "word";
      const wordsAround = isWord ? family.words - 1 : family.words;
      if (wordsAround < 1 || (isWord && NEGATIONS.has(pattern[place] as string))) continue;
      const context = this.contextOf(keys[place] as number);
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
  const seen = names.get(place) ?? new Set();
  if (seen.size >= NAMES.many || seen.has(name)) return 0;
  names.set(place, seen.add(name));
  return seen.has(VARIABLE) ? Math.max(seen.size, NAMES.some) : seen.size;
}

function newFamily(tokens: readonly Token[]): Family {
  const words = tokens.filter(({ kind }) => kind === "word").length;
  return { words, up: undefined, opened: new Map(), columns: new Map(), idPlaces: new Set(), names: new Map() };
}

function patternOf(tokens: readonly Token[]): string[] {
  return tokens.map(({ kind, text }) => (kind === "word" ? text : VARIABLE));
}

function columnOf(root: Family, place: number): Column {
  let column = root.columns.get(place);
  if (column === undefined) {
    column = { values: new Set(), kinds: new Set(), besideValues: false, open: false };
    root.columns.set(place, column);
  }
  return column;
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
  const into = rootOf(a);
  const from = rootOf(b);
  open(into, place, words);
  if (into === from) return;
  absorbed.push([from, into]);
  absorb(from, into);
}

/** Everything that `from` has shown counts for `into`. */
function absorb(from: Family, into: Family): void {
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
}

function open(family: Family, place: number, words: Iterable<string>): void {
  const seen = family.opened.get(place) ?? new Set();
  family.opened.set(place, seen);
  for (const word of words) if (seen.size < VALUES_MAX) seen.add(word);
}

/** A row as its family reads it now: what varies is "<*>". */
export function templateOf(root: Family, tokens: readonly Token[]): string {
  let out = "";
  for (let place = 0; place < tokens.length; place++) {
    const { text } = tokens[place] as Token;
    const variable = text === VARIABLE || root.opened.has(place) || root.columns.get(place)?.open === true;
    if (place > 0) out += " ";
    out += variable ? VARIABLE : text;
  }
  return out;
}

/** The values that a place has shown, for an explanation. */
export function valuesAt(root: Family, place: number): string[] {
  const words = root.opened.get(place) ?? [];
  const names = root.columns.get(place)?.values ?? [];
  return [...new Set([...words, ...names])].filter((value) => value !== VARIABLE).sort((a, b) => (a < b ? -1 : 1));
}
