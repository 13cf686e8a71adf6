/**
 * Learns the templates of one scope (a topic and an error code) from masked texts, in one pass and in bounded memory. The groups follow
 * from the set of texts alone, so two learners that have seen the same texts agree, and one takes over another's state by learning it.
 */
import { createHash } from "node:crypto";
import { MakegoodError } from "../../message/errors.ts";
import { entry, Families, type Family, rootOf, templateOf, unite, valuesAt } from "./families.ts";
import { KINDS, type Kind } from "./thresholds.ts";
import { type Token, tokenise } from "./tokens.ts";

/** Of mask, tokens, thresholds and learner together. It is part of every key: a change of any of them is a new number. */
export const FINGERPRINT_VERSION = 2;

/** What one scope may hold (I10). */
export const LEARNER_LIMITS = {
  /** Rows that taught something: each is kept, so that the state can be handed on. */
  rowsMax: 2_000,
  mergesMax: 4_000,
  /** Masked texts whose group is remembered; only speed depends on it. */
  knownMax: 2_000,
  knownCharsMax: 512,
} as const;

/** The template of everything that arrives after a scope is full and fits none of its templates. */
export const OVERFLOW = "<overflow>";

export interface Merge {
  readonly from: string;
  readonly to: string;
  readonly why: string;
}

export interface Template {
  readonly id: string;
  readonly text: string;
}

export interface LearnerState {
  readonly version: number;
  /** Rows of tokens, each token with the letter of its kind in front. */
  readonly rows: readonly string[];
  readonly merges: readonly Merge[];
  /** The groups as they are now, each with one of its rows: what leads from an id of this learner to the group of another. */
  readonly groups: readonly { readonly id: string; readonly row: string }[];
}

interface Group {
  readonly template: Template;
  readonly tokens: readonly Token[];
  readonly family: Family | undefined;
  /** The group it became. */
  to: Group | undefined;
}

const BY_LETTER = new Map<string | undefined, Kind>(Object.entries(KINDS).map(([kind, [letter]]) => [letter, kind as Kind]));

function encode(tokens: readonly Token[]): string {
  return tokens.map(({ kind, text }) => KINDS[kind][0] + text).join(" ");
}

function decode(row: string): Token[] {
  if (row === "") return [];
  return row.split(" ").map((part) => {
    const kind = BY_LETTER.get(part[0]);
    if (kind !== undefined) return { kind, text: part.slice(1) };
    const text = `A row of a template state has no token kind at "${part.slice(0, 40)}": restore a state that snapshot() made.`;
    throw new MakegoodError("invalid_config", text);
  });
}

export function templateId(scope: string, text: string, version = FINGERPRINT_VERSION): string {
  return createHash("sha256").update(`${version}\n${scope}\n${text}`).digest("hex").slice(0, 16);
}

export class TemplateLearner {
  readonly scope: string;
  readonly rowsMax: number;
  private readonly families = new Families();
  private readonly groups = new Map<string, Group>();
  private readonly byId = new Map<string, Group>();
  /** Groups that are not merged, by the root of their family. */
  private readonly live = new Map<Family, Set<Group>>();
  private readonly rows = new Set<string>();
  private readonly mergesByFrom = new Map<string, Merge>();
  private readonly known = new Map<string, Group>();
  private overflow: Group | undefined;

  constructor(scope: string, rowsMax: number = LEARNER_LIMITS.rowsMax) {
    this.scope = scope;
    this.rowsMax = rowsMax;
  }

  /** The template of a masked text; learns from it unless the scope is full. */
  learn(masked: string): Template {
    const known = this.known.get(masked);
    if (known !== undefined) return follow(known).template;
    const group = this.place(tokenise(masked));
    if (masked.length > LEARNER_LIMITS.knownCharsMax) return group.template;
    if (this.known.size >= LEARNER_LIMITS.knownMax) this.known.clear();
    this.known.set(masked, group);
    return group.template;
  }

  /** Whether nothing more is learned: what does not fit a template now goes to the overflow group. */
  get full(): boolean {
    return this.rows.size >= this.rowsMax;
  }

  /** Grows when the state has something new to save. */
  get size(): number {
    return this.rows.size + this.mergesByFrom.size;
  }

  /** Of everything that a snapshot holds: another one when there is something new to save. */
  get counts(): string {
    return `${this.rows.size} ${this.mergesByFrom.size} ${this.byId.size}`;
  }

  /** The group that an id stands for now, also when it was given out under an older template; undefined if it is not known here. */
  resolve(id: string): Template | undefined {
    let at = id;
    // No chain is longer than the record; the bound holds even if a foreign state leads in a circle.
    for (let steps = 0; steps <= LEARNER_LIMITS.mergesMax; steps++) {
      const group = this.byId.get(at);
      if (group !== undefined) return follow(group).template;
      const merge = this.mergesByFrom.get(at);
      if (merge === undefined) return undefined;
      at = merge.to;
    }
    return undefined;
  }

  /** Those that led to the group of this id, or all. */
  merges(id?: string): readonly Merge[] {
    const all = [...this.mergesByFrom.values()];
    return id === undefined ? all : all.filter(({ to }) => this.resolve(to)?.id === id);
  }

  /** The values that each place of the family of these tokens has shown. */
  valuesSeen(tokens: readonly Token[]): string[][] {
    const root = this.families.find(tokens);
    return root === undefined ? [] : tokens.map((_, place) => valuesAt(root, place));
  }

  snapshot(): LearnerState {
    const groups = [...this.byId.values()].map(({ template, tokens }) => ({ id: template.id, row: encode(tokens) }));
    return { version: FINGERPRINT_VERSION, rows: [...this.rows].sort(), merges: this.merges(), groups };
  }

  /** Learns what another learner of this scope knows. A state of another version says nothing here and is left alone. */
  absorb(state: LearnerState): void {
    if (state.version !== FINGERPRINT_VERSION) return;
    for (const row of state.rows) this.place(decode(row));
    for (const { from, to, why } of state.merges) this.record(from, to, why);
    for (const { id, row } of state.groups) {
      const group = id === templateId(this.scope, OVERFLOW) ? this.overflowGroup() : this.place(decode(row));
      this.record(id, group.template.id, `learned elsewhere; here it is "${group.template.text}"`);
    }
  }

  private place(tokens: readonly Token[]): Group {
    if (this.full) return this.fit(tokens);
    const { news, redrawn, absorbed } = this.families.add(tokens);
    for (const [from, into] of absorbed) this.hand(from, into);
    for (const root of redrawn) this.redraw(rootOf(root));
    const root = this.families.find(tokens) as Family;
    const before = this.groups.size;
    const group = this.group(root, tokens);
    if (news || this.groups.size > before) this.rows.add(encode(tokens));
    return group;
  }

  /** Without learning. */
  private fit(tokens: readonly Token[]): Group {
    const root = this.families.find(tokens);
    const group = root && this.groups.get(templateOf(root, tokens));
    return group === undefined ? this.overflowGroup() : follow(group);
  }

  private overflowGroup(): Group {
    this.overflow ??= this.newGroup(OVERFLOW, [], undefined);
    return this.overflow;
  }

  private newGroup(text: string, tokens: readonly Token[], family: Family | undefined): Group {
    const group: Group = { template: { id: templateId(this.scope, text), text }, tokens, family, to: undefined };
    this.byId.set(group.template.id, group);
    return group;
  }

  private group(root: Family, tokens: readonly Token[]): Group {
    const text = templateOf(root, tokens);
    const found = this.groups.get(text);
    if (found?.family !== undefined && rootOf(found.family) !== root) {
      // Rows that read alike must stay together, also when either family learns more later.
      const [from, into] = unite(found.family, root);
      this.hand(from, into);
      this.redraw(into);
      return this.group(rootOf(into), tokens);
    }
    if (found !== undefined) return found;
    const group = this.newGroup(text, tokens, root);
    this.groups.set(text, group);
    entry(this.live, root, () => new Set()).add(group);
    return group;
  }

  private hand(from: Family, into: Family): void {
    const ours = entry(this.live, rootOf(into), () => new Set());
    for (const group of this.live.get(from) ?? []) ours.add(group);
    this.live.delete(from);
  }

  /** A family reads differently now: groups whose template changed become the group of the new one. */
  private redraw(root: Family): void {
    for (const group of [...(this.live.get(root) ?? [])]) {
      if (templateOf(root, group.tokens) === group.template.text) continue;
      this.live.get(root)?.delete(group);
      const next = this.group(root, group.tokens);
      group.to = next;
      this.groups.delete(group.template.text);
      this.byId.delete(group.template.id);
      this.record(group.template.id, next.template.id, `"${group.template.text}" became "${next.template.text}"`);
    }
  }

  private record(from: string, to: string, why: string): void {
    if (from === to || this.mergesByFrom.has(from) || this.byId.has(from)) return;
    if (this.mergesByFrom.size >= LEARNER_LIMITS.mergesMax) {
      // The oldest merge goes first: its group has had the longest time to be asked for under its new id.
      this.mergesByFrom.delete(this.mergesByFrom.keys().next().value as string);
    }
    this.mergesByFrom.set(from, { from, to, why });
  }
}

function follow(group: Group): Group {
  let at = group;
  while (at.to !== undefined) at = at.to;
  return at;
}
