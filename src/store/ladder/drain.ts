/**
 * The way up: what waits in memory and in the journal goes into the primary store, then what the secondary store took. While the primary is
 * away, what is only in memory goes to any rung that is better than that. One drain at a time; each step may be cut off by a crash and
 * is simply done again.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { MessageView, NewMessage } from "../../message/message.ts";
import type { Events } from "../../observe/events.ts";
import { type Clock, within } from "../../platform/clock.ts";
import type { Drained, RungName, WaitingBelow } from "../fallback.ts";
import type { HandedDown } from "../handed-down.ts";
import type { Journal } from "../journal.ts";
import type { StatusCount, Store } from "../store.ts";
import type { KeysBelow } from "./keys-below.ts";
import type { MemoryRung } from "./memory-rung.ts";
import { moveUp } from "./move-up.ts";
import { type OfferDeps, type Offered, offer } from "./offer.ts";

export interface DrainOptions {
  readonly primary: Store;
  readonly ready: () => Promise<void>;
  readonly secondary?: Store | undefined;
  readonly secondaryReady?: (() => Promise<void>) | undefined;
  readonly journal?: Journal | undefined;
  readonly memory: MemoryRung;
  /** Ids that are being attempted or moved: an entry is in one hand at a time. */
  readonly busy: Set<string>;
  readonly topics: () => readonly string[];
  readonly ids: () => string;
  readonly clock: Clock;
  readonly events: Events;
  readonly keys: KeysBelow;
  /** What the secondary store counts. */
  readonly counted: (counts: readonly StatusCount[]) => void;
  /** Whether the primary could be used. */
  readonly told: (up: boolean) => void;
}

const BATCH = 100;
const CHECK_MS = 5_000;
/** With more ordered messages of a topic than this in the secondary store, all keys of the topic count as being there. */
const KEYS_MAX = 500;
/** What a store would not take for a reason of its own is offered again after this. */
const LATER_MS = 30_000;

export function createDrain(options: DrainOptions): () => Promise<Drained> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<Drained> | null = null;
  const later = new Map<string, number>();
  // Whoever calls during a drain shares the one that begins after it: the one under way may have found the store still away.
  return () => {
    next ??= running.then(() => {
      next = null;
      const drained = drainOnce(options, later);
      running = drained.catch(() => {});
      return drained;
    });
    return next;
  };
}

interface Count {
  moved: number;
  duplicates: number;
  conflicts: number;
}

async function drainOnce(options: DrainOptions, later: Map<string, number>): Promise<Drained> {
  const { journal, memory, clock, told } = options;
  try {
    if ((await within(clock, usable(options), CHECK_MS)) === null) {
      throw new MakegoodError("store_unavailable", `the primary store did not answer within ${CHECK_MS} ms`);
    }
  } catch (error) {
    told(false);
    await improve(options);
    if (options.secondary) await lookAside(options, options.secondary).catch(() => {});
    throw error;
  }
  told(true);
  const nowMs = clock.monotonicMs();
  for (const [id, untilMs] of later) if (untilMs <= nowMs) later.delete(id);
  const total: Count = { moved: 0, duplicates: 0, conflicts: 0 };
  const fromMemory: Source = {
    list: () => memory.list(),
    read: async (ids) => ids.flatMap((id) => memory.get(id) ?? []),
    done: async (ids: readonly string[]) => {
      for (const id of ids) memory.done(id);
    },
    // Its line is in the log; keeping it here would offer it for ever.
    quarantine: async (id: string) => memory.done(id),
  };
  await drainRung("memory", fromMemory, options, later, total);
  if (journal) await drainRung("journal", journal, options, later, total);
  const whole = options.secondary ? await drainSecondary(options, options.secondary, total) : true;
  return { ...total, left: memory.size + (journal?.stats().waiting ?? 0), whole };
}

async function usable({ ready, primary }: DrainOptions): Promise<true> {
  await ready();
  await primary.check();
  return true;
}

interface Source {
  list(): Iterable<WaitingBelow>;
  read(ids: readonly string[]): Promise<HandedDown[]>;
  done(ids: readonly string[]): Promise<void>;
  quarantine(id: string, reason: string): Promise<void>;
}

async function drainRung(
  rung: RungName,
  from: Source,
  options: DrainOptions,
  later: Map<string, number>,
  total: Count,
): Promise<void> {
  const { busy, keys, events } = options;
  const count: Count = { moved: 0, duplicates: 0, conflicts: 0 };
  const seen = new Set<string>();
  try {
    for (;;) {
      const free = (id: string): boolean => !busy.has(id) && !later.has(id) && !seen.has(id);
      const ids = firstOf(from.list(), (one, chosen) => free(one.id) && keys.mayGo(one, chosen));
      if (ids.length === 0) break;
      // Before anything is waited for: from here on no attempt is made of them.
      for (const id of ids) busy.add(id);
      try {
        await moveBatch(rung, from, ids, options, later, count);
      } finally {
        for (const id of ids) {
          busy.delete(id);
          seen.add(id);
        }
      }
    }
  } finally {
    add(count, total, rung, events);
  }
}

type Fits = (one: WaitingBelow, chosen: ReadonlySet<string>) => boolean;

function firstOf(waiting: Iterable<WaitingBelow>, fits: Fits): string[] {
  const ids = new Set<string>();
  for (const one of waiting) {
    if (ids.size >= BATCH) break;
    if (fits(one, ids)) ids.add(one.id);
  }
  return [...ids];
}

async function moveBatch(
  rung: RungName,
  from: Source,
  ids: readonly string[],
  options: DrainOptions,
  later: Map<string, number>,
  count: Count,
): Promise<void> {
  const { clock, keys, events } = options;
  const entries = await from.read(ids);
  const results = await offer(entries, offerTo(options.primary, options));
  const taken: string[] = [];
  for (const [i, { message }] of entries.entries()) {
    const result = results[i] as Offered;
    if (result.kind === "taken") taken.push(message.id);
    else if (result.kind === "later") later.set(message.id, clock.monotonicMs() + LATER_MS);
    else await from.quarantine(message.id, result.reason);
    if (result.kind === "conflict" || result.kind === "never") keys.gone(message.id);
    tally(result, message, rung, events, count);
  }
  await from.done(taken);
  // Only now: what comes for their keys meanwhile goes below as well.
  for (const id of taken) keys.gone(id);
}

function offerTo(store: Store, { ids, clock }: DrainOptions): OfferDeps {
  return { store, owner: `ladder-${ids()}`, ids, nowMs: clock.wallMs() };
}

async function drainSecondary(options: DrainOptions, secondary: Store, total: Count): Promise<boolean> {
  const { primary, topics, events } = options;
  const count: Count = { moved: 0, duplicates: 0, conflicts: 0 };
  const told = (message: NewMessage, result: Offered) => tally(result, message, "secondary", events, count);
  try {
    await options.secondaryReady?.();
    const names = topics();
    await moveUp({ ...offerTo(primary, options), secondary, topics: names, told });
    const counts = await lookAside(options, secondary);
    // What is being attempted there goes up when that has ended.
    return !counts.some(({ status, topic }) => status === "processing" && names.includes(topic));
  } catch (error) {
    // The secondary may be away in its turn: what it has is safe there and comes with the next round.
    events.emit({ type: "rung_failed", rung: "secondary", error: error instanceof Error ? error.message : String(error) });
    return false;
  } finally {
    add(count, total, "secondary", events);
  }
}

/** What the secondary store has now, and which ordering keys. */
async function lookAside({ topics, keys, counted }: DrainOptions, secondary: Store): Promise<StatusCount[]> {
  const names = topics();
  const { mark } = keys;
  const [lanes, counts] = await Promise.all([secondary.lanes(), secondary.counts()]);
  const found: MessageView[] = [];
  const whole: string[] = [];
  for (const topic of new Set(lanes.filter(({ ordered }) => ordered).map((lane) => lane.topic))) {
    if (!names.includes(topic)) continue;
    for (const status of ["pending", "processing"] as const) {
      const { data, nextCursor } = await secondary.list({ status, topic, payload: false, limit: KEYS_MAX });
      found.push(...data);
      if (nextCursor !== null) whole.push(topic);
    }
  }
  keys.sawAside(found, whole, mark);
  counted(counts);
  return counts;
}

function tally(result: Offered, { id, topic, key }: NewMessage, rung: RungName, events: Events, count: Count): void {
  if (result.kind === "taken") {
    count.moved++;
    if (result.duplicate) count.duplicates++;
    return;
  }
  if (result.kind === "later") {
    events.emit({ type: "rung_failed", rung, error: `message ${id} waits: ${result.reason}` });
    return;
  }
  count.conflicts++;
  events.emit({ type: "quarantined", rung, topic, id, key, reason: result.reason });
}

function add(count: Count, total: Count, rung: RungName, events: Events): void {
  total.moved += count.moved;
  total.duplicates += count.duplicates;
  total.conflicts += count.conflicts;
  if (count.moved + count.conflicts > 0) events.emit({ type: "drained", rung, ...count });
}

/** The primary is away: what is only in memory goes to the secondary or the journal, if one of them works again. */
async function improve(options: DrainOptions): Promise<void> {
  const { memory, busy, keys } = options;
  for (const id of firstOf(memory.list(), ({ id }) => !busy.has(id))) {
    const entry = memory.get(id);
    if (!entry || busy.has(id)) continue;
    busy.add(id);
    const kept = await keptBetter(entry, options).finally(() => busy.delete(id));
    if (!kept) return;
    memory.done(id);
    if (kept === "journal") continue;
    keys.gone(id);
    keys.cameAside(entry.message);
  }
}

async function keptBetter(entry: HandedDown, options: DrainOptions): Promise<"secondary" | "journal" | null> {
  const { secondary, secondaryReady, journal, keys } = options;
  const { message } = entry;
  // Into the secondary only the first of its ordering key: what comes after it waits until the secondary has none.
  const inOrder = message.orderingKey === null || keys.mayGo(message, new Set());
  try {
    await secondaryReady?.();
    const [offered] = secondary && inOrder ? await offer([entry], offerTo(secondary, options)) : [];
    if (offered?.kind === "taken") return "secondary";
  } catch {
    // Away as well: the journal is next.
  }
  return (await journal?.append(entry))?.kind === "kept" ? "journal" : null;
}
