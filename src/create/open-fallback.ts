/**
 * Opens the stores and what is below them. A primary store that is away keeps nobody from starting who has somewhere to put messages, or who
 * says that he can wait: it is opened when it comes, and the topics are declared in it then.
 */
import type { AnyTopic } from "../delivery/topic.ts";
import { type TopicTable, UNDECLARED } from "../delivery/topic-table.ts";
import { errorText, isMakegoodError, MakegoodError } from "../message/errors.ts";
import type { TopicDefinition, TopicRecord } from "../message/topic.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, inBackground, sleep, within } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { Ladder } from "../store/fallback.ts";
import { createJournal } from "../store/journal/journal.ts";
import type { Journal } from "../store/journal.ts";
import { createLadder } from "../store/ladder.ts";
import { createSealer } from "../store/seal.ts";
import type { Store } from "../store/store.ts";

export interface FallbackOptions {
  /** Who declares `topics`: the code itself, or a configuration file on its behalf. */
  readonly topicSource?: "code" | "file" | undefined;
  /** The second rung of deliver(): takes messages while the primary store cannot, and gives them up again. */
  readonly secondary?: Store | undefined;
  /** The third rung: a local, fsynced directory. `sealKey` seals payloads in it, and what `maskFields` names in the ERROR log. */
  readonly journal?:
    | Journal
    | { readonly directory: string; readonly bytesMax?: number | undefined; readonly sealKey?: string | undefined }
    | undefined;
  /** Members of payloads that must not stand in the ERROR log in clear. */
  readonly maskFields?: readonly string[] | undefined;
  /** Gets the lines of the ERROR log that hold what only memory has, or nothing; absent: standard error. */
  readonly errorLog?: ((line: string) => void) | undefined;
  /** Says by name that the memory store may be used although durable messages are known: they stay where they are (DF-29). */
  readonly allowMemory?: "despite-durable-entries" | undefined;
  /** True: close() leaves the store open, because somebody else uses it too. */
  readonly sharedStore?: boolean | undefined;
  /** True: starts although the primary store is away and nothing is below it. A store that is there and refuses us still ends the start. */
  readonly startsWithoutStore?: boolean | undefined;
  /** Runs when the primary store is open and the topics are declared, at the start or whenever it comes; until it succeeds the store counts as away. */
  readonly whenOpen?: ((store: Store) => Promise<void>) | undefined;
  /** Hears that a store which came late cannot be used at all: only a person can mend that. */
  readonly storeRefused?: ((error: unknown) => void) | undefined;
}

export interface FallbackParts {
  readonly store: Store;
  readonly topics: TopicTable;
  readonly declared: ReadonlyMap<string, AnyTopic>;
  readonly events: Events;
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Fallback {
  readonly ladder: Ladder;
  /** Whether the primary store has been opened. */
  opened(): boolean;
  close(): Promise<void>;
}

const REMEMBER_MS = 1_000;
const REOPEN_MS = 500;
const REOPEN_MS_MAX = 5_000;

export async function openFallback(options: FallbackOptions, parts: FallbackParts): Promise<Fallback> {
  const { store, topics, declared, events, ids, clock, random } = parts;
  const { secondary, maskFields = [], errorLog = (line: string) => void process.stderr.write(`${line}\n`) } = options;
  const given = options.journal;
  const sealKey = given && !("append" in given) ? given.sealKey : undefined;
  const note = (one: { what: string; file: string }) => events.emit({ type: "journal_note", ...one });
  const journal = given && !("append" in given) ? createJournal({ ...given, clock, random, note }) : given;
  const form = { maskFields, sealer: sealKey === undefined ? null : createSealer(sealKey, random) };
  const primary = createOpening(options, parts);
  const secondaryReady = once(async () => {
    await secondary?.open();
    for (const { definition } of declared.values()) await secondary?.topics.put(definition, sourceOf(options));
  });
  await journal?.open();
  await primary.start(secondary !== undefined || journal !== undefined);
  const memoryOnly = store.traits.name === "memory";
  if (memoryOnly) await refuseToForget(options, journal);
  // Never rejects for being away: what it cannot take goes further down.
  if (secondary)
    await secondaryReady().catch((error) => events.emit({ type: "rung_failed", rung: "secondary", error: errorText(error) }));
  const names = () => [...new Set([...declared.keys(), ...[...topics.entries()].map(({ name }) => name)])];
  const rungs = { primary: store, ready: primary.ready, secondary, secondaryReady, journal };
  const away = !primary.opened();
  const drains = !memoryOnly || !journal;
  const ladder = createLadder({ ...rungs, form, drains, away, topics: names, ids, clock, events, errorLog });
  if (journal && !memoryOnly) void rememberStore(store, journal, clock).catch(() => {});
  return {
    ladder,
    opened: primary.opened,
    async close() {
      primary.stop();
      if (journal && !memoryOnly) await within(clock, rememberStore(store, journal, clock), REMEMBER_MS).catch(() => {});
      await ladder.close();
      if (secondary && !options.sharedStore) await secondary.close().catch(() => {});
    },
  };
}

const sourceOf = ({ topicSource = "code" }: FallbackOptions): "code" | "file" => topicSource;

/** The primary store's way to being open: at the start, or again and again until it comes. */
function createOpening(options: FallbackOptions, { store, topics, declared, events, clock }: FallbackParts) {
  const stopping = new AbortController();
  let opened = false;
  const ready = once(async () => {
    await store.open();
    await declareTopics(store, topics, declared, sourceOf(options));
    await options.whenOpen?.(store);
    opened = true;
  });

  async function again(): Promise<void> {
    for (let failures = 1; ; failures++) {
      await sleep(inBackground(clock), Math.min(REOPEN_MS_MAX, REOPEN_MS * failures), stopping.signal);
      if (stopping.signal.aborted) return;
      try {
        await ready();
        events.emit({ type: "lifecycle", what: "store_opened", detail: { store: store.traits.name } });
        return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        events.emit({ type: "store_error", during: "open", error: errorText(error), consecutive: failures + 1 });
        if (!isAway(error) && options.storeRefused) return options.storeRefused(error);
      }
    }
  }

  return {
    ready,
    opened: () => opened,
    stop: () => stopping.abort(),
    async start(somethingBelow: boolean): Promise<void> {
      try {
        await ready();
      } catch (error) {
        const waits = options.startsWithoutStore ? !refusesUs(error) : somethingBelow;
        if (!isAway(error) || !waits) throw error;
        events.emit({ type: "store_error", during: "open", error: errorText(error), consecutive: 1 });
        for (const { definition } of declared.values()) topics.learn(undeclared(definition, sourceOf(options)));
        void again();
      }
    },
  };
}

const isAway = (error: unknown): boolean => isMakegoodError(error) && error.retryable;

/** The server is there and does not let us in, or has no such database: waiting would only hide a mistake. */
function refusesUs(error: unknown): boolean {
  if (!isMakegoodError(error)) return false;
  const state = String(error.detail.sqlState ?? error.detail.reply ?? "");
  return /^(28P01|28000|3D000|NOAUTH|WRONGPASS|NOPERM)$/.test(state) || /\b(NOAUTH|WRONGPASS)\b/.test(error.message);
}

async function declareTopics(
  store: Store,
  table: TopicTable,
  declared: ReadonlyMap<string, AnyTopic>,
  source: "code" | "file",
): Promise<void> {
  for (const { name, definition, sendsOnly } of declared.values()) {
    const stored = sendsOnly ? await store.topics.get(name) : null;
    const record = stored ?? (await store.topics.put(definition, source));
    if (record !== "read_only") table.learn(record);
  }
}

/** Runs until it has succeeded once; callers at the same time share one run. */
function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= work().catch((error) => {
      running = undefined;
      throw error;
    });
    return running;
  };
}

/** A declared topic as it will be, while the store that keeps its state cannot be asked. */
function undeclared(definition: TopicDefinition, source: "code" | "file"): TopicRecord {
  const breaker = { state: "closed", probeInMs: 0, trips: 0, reason: null } as const;
  return { ...definition, source, revision: UNDECLARED, paused: false, disabledReason: null, breaker };
}

/** What the durable store holds when this process leaves it: a later start without it can then be refused. */
async function rememberStore(store: Store, journal: Journal, clock: Clock): Promise<void> {
  const counts = await store.counts();
  const open = counts.filter(({ status, resolution }) => status !== "delivered" && (status !== "dead" || resolution === "open"));
  const unsettled = open.reduce((sum, { count }) => sum + count, 0);
  await journal.remember({ name: store.traits.name, unsettled, at: new Date(clock.wallMs()).toISOString() });
}

/** DF-29: a start in memory mode would abandon what a durable store or the journal still owes. */
async function refuseToForget({ allowMemory }: FallbackOptions, journal: Journal | undefined): Promise<void> {
  if (!journal || allowMemory === "despite-durable-entries") return;
  const { waiting, quarantined } = journal.stats();
  const known = await journal.remembered();
  if (waiting + quarantined === 0 && (known?.unsettled ?? 0) === 0) return;
  await journal.close();
  const elsewhere =
    known && known.unsettled > 0 ? `, and ${known.name} held ${known.unsettled} unsettled messages at ${known.at}` : "";
  throw new MakegoodError(
    "durable_entries_left",
    `the memory store would abandon what is still owed: the journal in ${journal.directory} holds ${waiting + quarantined} entries${elsewhere}. ` +
      'Start with the durable store, drain it, or say allowMemory: "despite-durable-entries"',
    { directory: journal.directory, waiting, quarantined, unsettled: known?.unsettled ?? 0 },
  );
}
