/**
 * Has everything below moved up: what waits in the journal and in memory into the primary store, then what the secondary store took. While the
 * primary is away, what is only in memory goes to any rung that is better than that. One drain at a time; each step may be cut off by a
 * crash and is simply done again.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { MessageView, NewMessage } from "../../message/message.ts";
import type { Events } from "../../observe/events.ts";
import { type Clock, within } from "../../platform/clock.ts";
import type { Drained, RungName } from "../fallback.ts";
import type { Journal } from "../journal.ts";
import type { Store } from "../store.ts";
import type { Below } from "./below.ts";
import { type MoveDeps, moveUp } from "./move-up.ts";
import type { Offered } from "./offer.ts";
import type { SecondaryContents } from "./secondary-contents.ts";

export interface DrainOptions {
  readonly primary: Store;
  readonly ready: () => Promise<void>;
  readonly secondary?: Store | undefined;
  readonly secondaryReady?: (() => Promise<void>) | undefined;
  readonly journal?: Journal | undefined;
  readonly below: Below;
  readonly topics: () => readonly string[];
  readonly ids: () => string;
  readonly clock: Clock;
  readonly events: Events;
  readonly inSecondary: SecondaryContents;
  /** Whether the primary could be used. */
  readonly onPrimary: (up: boolean) => void;
  /** The journal has taken what only memory had. */
  readonly journalTook: () => void;
}

const CHECK_MS = 5_000;
/** What a store would not take for a reason of its own is offered again after this. */
const LATER_MS = 30_000;

export function createDrain(options: DrainOptions): () => Promise<Drained> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<Drained> | null = null;
  const later = new Map<string, number>();
  // Callers during a drain share the one that begins after it: the one under way may have found the store still away.
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

async function drainOnce(options: DrainOptions, later: Map<string, number>): Promise<Drained> {
  const { below, secondary, journal, inSecondary, clock, onPrimary } = options;
  below.sync();
  try {
    if ((await within(clock, usable(options), CHECK_MS)) === null) {
      throw new MakegoodError("store_unavailable", `the primary store did not answer within ${CHECK_MS} ms`);
    }
  } catch (error) {
    onPrimary(false);
    await improve(options);
    if (secondary) await look(options, secondary, options.topics()).catch(() => {});
    throw error;
  }
  onPrimary(true);
  if (secondary && inSecondary.heard === "never") await firstLook(options, secondary);
  const nowMs = clock.monotonicMs();
  for (const [id, untilMs] of later) if (untilMs <= nowMs) later.delete(id);
  const tally = createTally(options.events, (id) => void later.set(id, nowMs + LATER_MS));
  const mayGo = (view: MessageView): boolean => !later.has(view.id);
  try {
    await moveUp({
      ...moving(options, options.primary),
      ...{ from: below.source, topics: null, mayGo: (view) => mayGo(view) && !inSecondary.holdsKey(view) },
      onOffered: (message, result) => tally.add(below.placeOf(message.id), message, result),
    });
    const whole = secondary ? await drainSecondary(options, secondary, mayGo, tally) : true;
    return { ...tally.total, left: below.inMemory + (journal?.stats().waiting ?? 0), whole };
  } finally {
    tally.say();
  }
}

async function usable({ ready, primary }: DrainOptions): Promise<true> {
  await ready();
  await primary.check();
  return true;
}

/** Before anything goes up: what it holds of an ordering key goes first. */
async function firstLook(options: DrainOptions, secondary: Store): Promise<void> {
  const { inSecondary, secondaryReady, topics, clock, journal } = options;
  const asked = async (): Promise<void> => {
    await secondaryReady?.();
    await look(options, secondary, topics());
  };
  await within(clock, asked(), CHECK_MS).catch(() => {});
  // A secondary that gives no answer blocks nothing, unless a process of ours has noted that it holds an ordering key.
  if (inSecondary.heard === "never" && !(await journal?.notedOrdered())) inSecondary.heard = "silent";
}

async function look(
  { inSecondary, clock, journal }: DrainOptions,
  secondary: Store,
  topics: readonly string[],
): Promise<boolean> {
  const { underWay, notes } = inSecondary;
  const attempted = await inSecondary.look(secondary, topics, clock.wallMs());
  // A put that was under way when it was asked may be there by now.
  if (inSecondary.noted && !inSecondary.holdsKeys && underWay === 0 && notes === inSecondary.notes) {
    inSecondary.noted = false;
    await journal?.noteOrdered(false);
  }
  return attempted;
}

function moving({ ids, clock }: DrainOptions, to: Store): Pick<MoveDeps, "to" | "owner" | "ids" | "now" | "isLast"> {
  return { to, owner: `ladder-${ids()}`, ids, now: () => clock.wallMs(), isLast: true };
}

async function drainSecondary(options: DrainOptions, secondary: Store, mayGo: MoveDeps["mayGo"], tally: Tally): Promise<boolean> {
  const topics = options.topics();
  const onOffered = (message: NewMessage, result: Offered): void => tally.add("secondary", message, result);
  try {
    await options.secondaryReady?.();
    await moveUp({ ...moving(options, options.primary), from: secondary, topics, mayGo, onOffered });
    // What is being attempted there goes up when that has ended.
    return !(await look(options, secondary, topics));
  } catch (error) {
    // The secondary may be away as well: what it has is safe there and comes with the next round.
    options.events.emit({ type: "rung_failed", rung: "secondary", error: errorText(error) });
    return false;
  }
}

/** The primary is away: what is only in memory goes to the journal or the secondary store, if one of them works again. */
async function improve(options: DrainOptions): Promise<void> {
  const { below, secondary, inSecondary } = options;
  if (await below.improve()) options.journalTook();
  if (!secondary || below.inMemory === 0) return;
  try {
    await options.secondaryReady?.();
    await moveUp({
      ...moving(options, secondary),
      ...{ from: below.source, topics: null, isLast: false },
      mayGo: (view) => below.placeOf(view.id) === "memory" && !inSecondary.holdsKey(view),
      onOffered: (message, result) => {
        if (result.kind === "taken") inSecondary.came(message, options.clock.wallMs(), result.duplicate);
      },
    });
  } catch {
    // Away as well: it stays in memory.
  }
}

type Tally = ReturnType<typeof createTally>;

function createTally(events: Events, notNow: (id: string) => void) {
  const total = { moved: 0, duplicates: 0, conflicts: 0 };
  const rungs = new Map<RungName, typeof total>();
  return {
    total,
    add(rung: RungName, { id, topic, key }: NewMessage, result: Offered): void {
      const count = rungs.get(rung) ?? { moved: 0, duplicates: 0, conflicts: 0 };
      rungs.set(rung, count);
      for (const one of [count, total]) {
        if (result.kind === "taken") one.moved++;
        if (result.kind === "taken" && result.duplicate) one.duplicates++;
        if (result.kind === "conflict" || result.kind === "never") one.conflicts++;
      }
      if (result.kind === "taken") {
        if (result.duplicate && result.id !== id) events.emit({ type: "absorbed", rung, topic, id, key, by: result.id });
        return;
      }
      notNow(id);
      if (result.kind === "later") events.emit({ type: "rung_failed", rung, error: `message ${id} waits: ${result.reason}` });
      else events.emit({ type: "quarantined", rung, topic, id, key, reason: result.reason });
    },
    say(): void {
      for (const [rung, count] of rungs) if (count.moved + count.conflicts > 0) events.emit({ type: "drained", rung, ...count });
    },
  };
}
