/**
 * What the memory engine of the recovery seam holds: groups, occurrences, candidates, redrives and what was learned, beside the memory
 * store's own state. Rows are replaced, never changed, so a write that throws is taken back whole; ids are not reused.
 */
import type { Candidate, GroupIdentity, Occurrence, Provenance } from "../../recovery.ts";
import type { ItemState, MessageOrigin, NewRedrive, Redrive, RedriveItem } from "../../redrive.ts";
import type { State } from "../state.ts";

export interface GroupRow extends GroupIdentity {
  readonly groupId: number;
  readonly occurrenceCount: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly version: number;
  readonly mergedInto: number | null;
  readonly heldBy: string | null;
}

export interface OccurrenceRow extends Omit<Occurrence, "open"> {
  readonly payloadHash: string;
}

export interface RedriveRow extends Omit<Redrive, "counts"> {
  readonly requestHash: NewRedrive["requestHash"];
  /** The fence; null: no runner works on it. */
  readonly token: string | null;
  readonly leaseUntilMs: number;
  /** Null: it was never claimed. */
  readonly workedMs: number | null;
}

export interface ItemRow extends RedriveItem {
  readonly lookedMs: number | null;
}

export interface OutcomeRow {
  readonly successes: number;
  readonly failures: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export interface DocumentRow {
  readonly id: string;
  readonly version: number;
  /** Null: deleted; the row stays, so that versions count on. */
  readonly text: string | null;
  readonly actor: string;
  readonly at: Date;
}

export interface Memory {
  readonly kernel: State;
  readonly groups: Map<number, GroupRow>;
  readonly fingerprints: Map<string, number>;
  /** Own ids of groups and those supplied from outside → the group that has them. */
  readonly matches: Map<string, number>;
  readonly occurrences: Map<number, OccurrenceRow>;
  /** Group → its occurrences, by where they were counted. */
  readonly members: Map<number, Set<number>>;
  /** Request key → occurrence. */
  readonly ledger: Map<string, number>;
  readonly byMessage: Map<string, readonly number[]>;
  readonly candidates: Map<number, Candidate>;
  /** Group → its latest candidate. */
  readonly latest: Map<number, number>;
  /** Candidate → when its execution began, and by whom. */
  readonly began: Map<number, { readonly by: string | null; readonly ms: number }>;
  readonly provenance: Map<number, Provenance>;
  /** JSON of [level, scope, action]. */
  readonly outcomes: Map<string, OutcomeRow>;
  /** JSON of [kind, id]. */
  readonly documents: Map<string, DocumentRow>;
  readonly versions: Map<string, readonly DocumentRow[]>;
  readonly revisions: Map<string, number>;
  readonly redrives: Map<string, RedriveRow>;
  readonly items: Map<string, Map<number, ItemRow>>;
  readonly origins: Map<string, MessageOrigin>;
  ids: number;
  /** How to take back the write that is under way. */
  undo: (() => void)[] | null;
}

export function createMemory(kernel: State): Memory {
  return {
    kernel,
    groups: new Map(),
    fingerprints: new Map(),
    matches: new Map(),
    occurrences: new Map(),
    members: new Map(),
    ledger: new Map(),
    byMessage: new Map(),
    candidates: new Map(),
    latest: new Map(),
    began: new Map(),
    provenance: new Map(),
    outcomes: new Map(),
    documents: new Map(),
    versions: new Map(),
    revisions: new Map(),
    redrives: new Map(),
    items: new Map(),
    origins: new Map(),
    ids: 0,
    undo: null,
  };
}

/**
 * All of `work` or nothing of it. What it does to the kernel's own state cannot be taken back: it comes last, after everything that
 * can throw.
 */
export function atomically<T>(memory: Memory, work: () => T): T {
  const undo: (() => void)[] = [];
  memory.undo = undo;
  try {
    return work();
  } catch (thrown) {
    for (const step of undo.reverse()) step();
    throw thrown;
  } finally {
    memory.undo = null;
  }
}

export function set<K, V>(memory: Memory, map: Map<K, V>, key: K, value: V): void {
  const [had, old] = [map.has(key), map.get(key) as V];
  memory.undo?.push(() => void (had ? map.set(key, old) : map.delete(key)));
  map.set(key, value);
}

export function setItem(memory: Memory, redriveId: string, item: ItemRow): void {
  set(memory, memory.items.get(redriveId) as Map<number, ItemRow>, item.n, item);
}

export const itemsOf = (memory: Memory, redriveId: string): ItemRow[] => [...(memory.items.get(redriveId)?.values() ?? [])];

export function countItems(items: readonly { readonly state: ItemState }[]): Record<ItemState, number> {
  const counts = { waiting: 0, sent: 0, healed: 0, failed: 0, skipped: 0 };
  for (const { state } of items) counts[state]++;
  return counts;
}
