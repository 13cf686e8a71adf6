/**
 * The fallback ladder: primary store, secondary store, local journal, memory with the whole entry in the ERROR log; the first that accepts
 * wins, each is asked once, all within one time. After an outage a loop moves what waits below up again, by put-if-absent only.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { NewMessage } from "../../message/message.ts";
import type { Events } from "../../observe/events.ts";
import { type Clock, inBackground, within } from "../../platform/clock.ts";
import { startLoop } from "../../platform/loop.ts";
import type { Random } from "../../platform/random.ts";
import { tell } from "../../platform/tell.ts";
import type { Ladder, PutDown, RungName } from "../fallback.ts";
import type { Journal } from "../journal.ts";
import type { Store } from "../store.ts";
import { createBelow } from "./below.ts";
import { createDrain } from "./drain.ts";
import { entryLine, refusedLine } from "./format/error-line.ts";
import type { EntryForm, HandedDown } from "./format/handed-down.ts";
import { statusOf } from "./holdings.ts";
import { SecondaryContents } from "./secondary-contents.ts";

export interface LadderOptions {
  readonly primary: Store;
  /** False: it is not open yet, and counts as away. */
  readonly opened: () => boolean;
  /** Opens the primary where it could not be opened at the start; resolves at once when it is open. */
  readonly ready: () => Promise<void>;
  readonly secondary?: Store | undefined;
  /** The same for the secondary one: connected, topics declared. */
  readonly secondaryReady?: (() => Promise<void>) | undefined;
  readonly journal?: Journal | undefined;
  readonly form: EntryForm;
  /** False: what is durable below must not move into a store that is less so (DF-29). */
  readonly drains: boolean;
  readonly topics: () => readonly string[];
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  /** True: what a store takes that survives nothing is in the ERROR log, too. */
  readonly logsUnsafe?: boolean | undefined;
  /** Gets one whole line of the ERROR log, without its end. */
  readonly errorLog: (line: string) => void;
}

const IDLE_MS = 5_000;
const DRAIN_MS = 500;
/** With nothing but memory below, the loop is nudged when there is something to do. */
const ALONE_MS = 600_000;
const LOOK_MS = 60_000;
/** What a slow disk may take. */
const FSYNC_MS = 500;
/** A rung that hung is left alone for a while: every caller would pay for it again. */
const REST_MS = 2_000;

interface Rung {
  readonly name: Exclude<RungName, "memory">;
  put(entry: HandedDown): Promise<PutDown>;
}

export function createLadder(options: LadderOptions): Ladder {
  const { primary, secondary, journal, clock, events, form, errorLog } = options;
  const resting = new Map<RungName, number>();
  const primaryAt = options.opened() ? "up" : "down";
  // What the secondary holds is not known here: it is looked at first, after each put to it, and now and then.
  const state = {
    ...{ primary: primaryAt as "up" | "down", below: secondary !== undefined, lookedMs: clock.monotonicMs() },
    ...{ refusedAtBytes: null as number | null, journalError: "" },
  };
  const idleMs = secondary || journal ? IDLE_MS : ALONE_MS;
  const rungs: Rung[] = [storeRung("primary", primary, () => openNow(options))];
  if (secondary) {
    const beside = storeRung("secondary", secondary, options.secondaryReady ?? (async () => {}));
    rungs.push({ name: "secondary", put: (entry) => putSecondary(entry, beside) });
  }
  if (journal) rungs.push({ name: "journal", put: (entry) => below.put(entry, journal) });
  const onPrimary = (up: boolean): void => {
    state.primary = up ? "up" : "down";
  };
  const below = createBelow({
    ...{ journal, clock, random: options.random },
    ended: () => {
      if (state.primary === "up") loop.nudge();
    },
  });
  const inSecondary = new SecondaryContents();
  if (!secondary) inSecondary.heard = "yes";
  const holdsKey = (message: NewMessage): boolean => below.holdsKey(message) || inSecondary.holdsKey(message);
  const journalTook = (): void => {
    state.refusedAtBytes = null;
  };
  const drain = createDrain({ ...options, below, inSecondary, onPrimary, journalTook });
  const loop = startLoop({
    clock: inBackground(clock),
    step: async () => {
      await takeOver();
      below.sync();
      const nowMs = clock.monotonicMs();
      if (secondary && nowMs - state.lookedMs > LOOK_MS) state.below = true;
      const waiting = below.inMemory + (journal?.stats().waiting ?? 0);
      // A store that was away is asked until it answers, whether or not anything waits for it.
      if (!options.drains || (waiting === 0 && !state.below && state.primary === "up")) return idleMs;
      // Before the drain: what is put below while it runs must not be forgotten.
      Object.assign(state, { below: false, lookedMs: nowMs });
      const { left, whole } = await drain().catch((error) => {
        state.below = secondary !== undefined;
        throw error;
      });
      if (!whole) state.below = true;
      return left > 0 || state.below ? DRAIN_MS : idleMs;
    },
    failed: (_error, consecutive) => Math.min(IDLE_MS, DRAIN_MS * consecutive),
  });

  /** Noted before it lies there: a process that ends in between must not be followed by one that overtakes it. Each time, others may remove the note. */
  async function putSecondary(entry: HandedDown, rung: Rung): Promise<PutDown> {
    if (entry.message.orderingKey === null) return rung.put(entry);
    inSecondary.noted = true;
    inSecondary.notes++;
    inSecondary.underWay++;
    try {
      await journal?.noteOrdered(true).catch(() => {});
      return await rung.put(entry);
    } finally {
      inSecondary.underWay--;
    }
  }

  /** A directory that is gone or cannot be read must not keep what only memory has from going up. */
  async function takeOver(): Promise<void> {
    const error = (await journal?.takeOver().then(() => "", errorText)) ?? "";
    if (error !== "" && error !== state.journalError) events.emit({ type: "rung_failed", rung: "journal", error });
    state.journalError = error;
  }

  async function keysMovedUp(messages: readonly NewMessage[], withinMs: number): Promise<boolean> {
    const held = (): boolean => messages.some(holdsKey);
    if (!held()) return true;
    await within(clock, drain(), withinMs).catch(() => null);
    return !held();
  }

  /** A rung above one that has something of the entry's ordering key would be overtaking it. */
  const overtakes = (rung: RungName, { message }: HandedDown): boolean =>
    (rung === "primary" && holdsKey(message)) || (rung === "secondary" && below.holdsKey(message));

  async function put(entry: HandedDown, untilMs: number): Promise<PutDown> {
    const failures: string[] = [];
    if (state.primary === "up") await keysMovedUp([entry.message], (untilMs - clock.monotonicMs()) / 2);
    for (const [i, rung] of rungs.entries()) {
      if (overtakes(rung.name, entry)) {
        failures.push(`${rung.name}: others of its ordering key wait below`);
        continue;
      }
      const nowMs = clock.monotonicMs();
      if ((resting.get(rung.name) ?? 0) > nowMs) {
        failures.push(`${rung.name}: did not answer lately`);
        continue;
      }
      const asked = await ask(rung, entry, shareMs(untilMs - nowMs, rungs.length - i), clock);
      if (rung.name === "journal") state.refusedAtBytes = asked.kind === "answered" ? null : (journal?.stats().bytes ?? null);
      if (asked.kind === "answered") {
        if (rung.name === "primary") state.primary = "up";
        else cameBelow(rung.name, entry, asked.put);
        if (options.logsUnsafe && asked.put.kind === "stored" && asked.put.survives === "nothing" && !asked.put.duplicate)
          tell(() => errorLog(entryLine(entry, `${rung.name} survives nothing`, form)));
        return asked.put;
      }
      if (asked.kind === "late") resting.set(rung.name, clock.monotonicMs() + REST_MS);
      if (rung.name === "primary") state.primary = "down";
      failures.push(`${rung.name}: ${asked.error}`);
      events.emit({ type: "rung_failed", rung: rung.name, error: asked.error });
    }
    const why = failures.join("; ");
    const kept = below.keep(entry, () => tell(() => errorLog(entryLine(entry, why, form))));
    if (kept.kind === "stored") cameBelow("memory", entry, kept);
    return kept.kind === "refused" ? { ...kept, error: `nothing could keep it (${why}; ${kept.error})` } : kept;
  }

  function cameBelow(rung: RungName, { message, atMs }: HandedDown, put: PutDown): void {
    if (put.kind === "stored" && rung === "secondary") inSecondary.came(message, atMs, put.duplicate);
    state.below = true;
    loop.nudge();
    below.came();
  }

  below.sync();
  return {
    get away() {
      return state.primary === "down";
    },
    put,
    below,
    keysMovedUp,
    storeOf: (rung) => (rung === "primary" ? primary : rung === "secondary" && secondary ? secondary : below),
    logUnkept: (why, fields, text) => tell(() => errorLog(refusedLine(clock.wallMs(), why, fields, text, form))),
    drain,
    status: () =>
      statusOf(state.primary, { primary, secondary, journal, below, inSecondary, refusedAtBytes: state.refusedAtBytes }),
    async close(withinMs = 1_000) {
      // A store that hangs must not keep a process from ending: what it was asked for is done again by the next process.
      await within(clock, loop.stop(), withinMs);
      const waiting = below.inMemory + (journal?.stats().waiting ?? 0);
      if (waiting > 0 && options.drains) await within(clock, drain(), withinMs).catch(() => null);
    },
  };
}

/** What one rung may take of the time that is left: something over half, so that those below have theirs, an fsync included. */
function shareMs(leftMs: number, rungsLeft: number): number {
  return Math.max(0, rungsLeft > 1 ? Math.min(leftMs * 0.6, Math.max(leftMs / 2, leftMs - FSYNC_MS)) : leftMs - 20);
}

type Asked = { readonly kind: "answered"; readonly put: PutDown } | { readonly kind: "failed" | "late"; readonly error: string };

async function ask(rung: Rung, entry: HandedDown, withinMs: number, clock: Clock): Promise<Asked> {
  const answer = rung.put(entry).then(
    (put): Asked => (put.kind === "refused" ? { kind: "failed", error: put.error } : { kind: "answered", put }),
    (error: unknown): Asked => ({ kind: "failed", error: errorText(error) }),
  );
  return (await within(clock, answer, withinMs)) ?? { kind: "late", error: `no answer within ${Math.round(withinMs)} ms` };
}

function storeRung(name: "primary" | "secondary", store: Store, ready: () => Promise<void>): Rung {
  return {
    name,
    async put(entry) {
      await ready();
      // The whole delay, by the store's clock: what a receiver asked for is never undercut.
      const [result] = await store.enqueue([entry.message]);
      if (!result) return { kind: "refused", code: "store_unavailable", error: "the store gave no answer" };
      if (result.kind === "conflict") return { kind: "conflict", rung: name, id: result.id };
      return {
        kind: "stored",
        rung: name,
        survives: store.traits.survives,
        id: result.id,
        duplicate: result.kind === "duplicate",
      };
    },
  };
}

/** Nobody waits for a store that is still opening: the way down goes on at once. */
async function openNow({ opened, ready }: LadderOptions): Promise<void> {
  if (opened()) return;
  void ready().catch(() => {});
  throw new MakegoodError("store_unavailable", "the primary store is not open yet");
}
