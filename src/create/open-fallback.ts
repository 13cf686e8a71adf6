/**
 * Opens the stores and what is below them. A primary store that is away keeps nobody from starting who has somewhere to put messages, or who
 * says that he can wait: it is opened when it comes, and the topics are declared in it then.
 */
import { errorText, MakegoodError } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, within } from "../platform/clock.ts";
import { once } from "../platform/once.ts";
import type { Random } from "../platform/random.ts";
import type { Ladder } from "../store/fallback.ts";
import { createJournal } from "../store/journal/journal.ts";
import type { Journal } from "../store/journal.ts";
import { createSealer } from "../store/ladder/format/seal.ts";
import { createLadder } from "../store/ladder/ladder.ts";
import { tallyOf, UNSETTLED } from "../store/shared/tally.ts";
import type { Store } from "../store/store.ts";
import type { AnyTopic } from "../topic/topic.ts";
import type { TopicTable } from "../topic/topic-table.ts";
import { createOpening, type Opening, sourceOf } from "./opening.ts";

export interface FallbackOptions {
  /** Who declares `topics`: the code itself, or a configuration file on its behalf. */
  readonly topicSource?: "code" | "file" | undefined;
  /** The second rung of deliver(): takes messages while the primary store cannot, and gives them up again. */
  readonly secondary?: Store | undefined;
  /**
   * The third rung: a local, fsynced directory. `sealKey` seals payloads in it, and what `maskFields` names in the ERROR log. One that is
   * handed in as an object is not closed by close().
   */
  readonly journal?:
    | Journal
    | { readonly directory: string; readonly bytesMax?: number | undefined; readonly sealKey?: string | undefined }
    | undefined;
  /** Hears that the journal cannot be used, and the start goes on without it. Absent: that ends the start. */
  readonly journalRefused?: ((error: unknown) => void) | undefined;
  /** Members of payloads that must not stand in the ERROR log in clear. */
  readonly maskFields?: readonly string[] | undefined;
  /** Gets the lines of the ERROR log that hold what only memory has, or nothing; absent: standard error. */
  readonly errorLog?: ((line: string) => void) | undefined;
  /** True: what a store takes in deliver() that survives nothing is written to the ERROR log in whole, as what only memory has always is. */
  readonly logsUnsafe?: boolean | undefined;
  /** Says by name that the memory store may be used although durable messages are known: they stay where they are (DF-29). */
  readonly allowMemory?: "despite-durable-entries" | undefined;
  /** True: close() leaves the store open, because its owner uses it too. */
  readonly sharedStore?: boolean | undefined;
  /**
   * True: starts although the primary store is away and nothing is below it. A store that is there and refuses us still ends the start, unless
   * this says `even-refused`.
   */
  readonly startsWithoutStore?: boolean | "even-refused" | undefined;
  /**
   * How long the start waits for the primary store; then it goes on without it, and the store counts as away until it is open. 0: it does
   * not wait. Absent: as long as opening takes. A store that refuses us within this time ends the start.
   */
  readonly openWithinMs?: number | undefined;
  /** Runs when the primary store is open and the topics are declared, at the start or whenever it comes; until it succeeds the store counts as away. */
  readonly whenOpen?: ((store: Store) => Promise<void>) | undefined;
  /** Hears that a store which came late cannot be used at all: only a person can mend that. It is tried again all the same. */
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

export interface Fallback extends Pick<Opening, "opened" | "whenOpened"> {
  readonly ladder: Ladder;
  close(): Promise<void>;
}

const REMEMBER_MS = 1_000;

export async function openFallback(options: FallbackOptions, parts: FallbackParts): Promise<Fallback> {
  const { store, topics, declared, events, ids, clock, random } = parts;
  const { secondary, maskFields = [], errorLog = (line: string) => void process.stderr.write(`${line}\n`) } = options;
  const given = options.journal;
  const sealKey = given && !("append" in given) ? given.sealKey : undefined;
  const note = (one: { what: string; file: string }) => events.emit({ type: "journal_note", ...one });
  const made = given && !("append" in given) ? createJournal({ ...given, clock, random, note }) : undefined;
  const form = { maskFields, sealer: sealKey === undefined ? null : createSealer(sealKey, random) };
  const primary = createOpening(options, parts);
  const secondaryReady = once(async () => {
    await secondary?.open();
    for (const { definition } of declared.values()) await secondary?.topics.put(definition, sourceOf(options));
  });
  const memoryOnly = store.traits.name === "memory";
  const openJournal = async (of = made ?? (given as Journal | undefined)) => {
    await of?.open();
    if (memoryOnly) await refuseToForget(options, of);
    return of;
  };
  const journal = await openJournal().catch(async (error) => {
    await made?.close().catch(() => {});
    if (!options.journalRefused) throw error;
    options.journalRefused(error);
    return undefined;
  });
  try {
    await primary.start(secondary !== undefined || journal !== undefined);
  } catch (error) {
    if (journal === made) await made?.close();
    throw error;
  }
  // Never rejects for being away: what it cannot take goes further down.
  if (secondary) {
    const failed = (error: unknown) => events.emit({ type: "rung_failed", rung: "secondary", error: errorText(error) });
    const ready = secondaryReady().catch(failed);
    await (options.openWithinMs === undefined ? ready : within(clock, ready, options.openWithinMs));
  }
  const names = () => [...new Set([...declared.keys(), ...[...topics.entries()].map(({ name }) => name)])];
  const { opened, ready, whenOpened } = primary;
  const rungs = { primary: store, opened, ready, secondary, secondaryReady, journal };
  const drains = !memoryOnly || !journal;
  const away = !opened();
  const { logsUnsafe = false } = options;
  const ladder = createLadder({ ...rungs, form, logsUnsafe, drains, topics: names, ids, clock, random, events, errorLog });
  const known = async (): Promise<void> => {
    await whenOpened();
    if (journal && !memoryOnly) await rememberStore(store, journal, clock);
  };
  void known().catch(() => {});
  if (away)
    void whenOpened()
      .then(() => ladder.drain())
      .catch(() => {});
  return {
    ladder,
    opened,
    whenOpened,
    async close() {
      primary.stop();
      if (journal && !memoryOnly && opened())
        await within(clock, rememberStore(store, journal, clock), REMEMBER_MS).catch(() => {});
      await ladder.close();
      if (journal === made) await made?.close();
      if (secondary && !options.sharedStore) await secondary.close().catch(() => {});
    },
  };
}

/** What the durable store holds when this process leaves it: a later start without it can then be refused. */
async function rememberStore(store: Store, journal: Journal, clock: Clock): Promise<void> {
  const counts = await store.counts();
  const { count: unsettled } = tallyOf(counts, "*", [...UNSETTLED, "dead"]);
  await journal.remember({ name: store.traits.name, unsettled, at: new Date(clock.wallMs()).toISOString() });
}

/** DF-29: a start in memory mode would abandon what a durable store or the journal still owes. */
async function refuseToForget({ allowMemory }: FallbackOptions, journal: Journal | undefined): Promise<void> {
  if (!journal || allowMemory === "despite-durable-entries") return;
  const { waiting, quarantined } = journal.stats();
  const known = await journal.remembered();
  if (waiting + quarantined === 0 && (known?.unsettled ?? 0) === 0) return;
  const elsewhere =
    known && known.unsettled > 0 ? `, and ${known.name} held ${known.unsettled} unsettled messages at ${known.at}` : "";
  throw new MakegoodError(
    "durable_entries_left",
    `the memory store would abandon what is still owed: the journal in ${journal.directory} holds ${waiting + quarantined} entries${elsewhere}. ` +
      'Start with the durable store, drain it, or say allowMemory: "despite-durable-entries"',
    { directory: journal.directory, waiting, quarantined, unsettled: known?.unsettled ?? 0 },
  );
}
