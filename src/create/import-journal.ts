/**
 * Moves what the last rungs of the fallback ladder hold into the store, if it is absent there: journal directories, and the lines that the
 * ERROR log got when only memory had a message. It can be stopped and run again at any time.
 */
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMakegood, type MakegoodOptions } from "../create.ts";
import { systemRandom } from "../platform/random.ts";
import { createJournal } from "../store/journal/journal.ts";
import { type JournalContents, readJournal } from "../store/journal/read-journal.ts";
import { readLine } from "../store/ladder/format/error-line.ts";
import type { HandedDown } from "../store/ladder/format/handed-down.ts";
import { createSealer } from "../store/ladder/format/seal.ts";
import type { Store } from "../store/store.ts";
import type { AnyTopic } from "../topic/topic.ts";

export interface Imported {
  moved: number;
  /** Were there already. */
  duplicates: number;
  /** Contradict what is stored and stay in quarantine. */
  conflicts: number;
  /** Stay where they are: their process runs, their topic is unknown, or they are damaged. */
  left: number;
  /** Lines that could not be read back. */
  unreadable: number;
}

export interface ImportOptions {
  /** A Makegood's own settings, for each directory anew: closing it closes its store. */
  readonly open: () => Promise<{ readonly options: MakegoodOptions; release(): Promise<void> }>;
  /** Runs once its store is open; a store that is away makes it fail. */
  readonly prepare: (store: Store) => Promise<void>;
  /** The topics that these messages need and nobody else declares. */
  readonly topicsOf: (names: ReadonlySet<string>) => readonly AnyTopic[];
  readonly sealKey: string | undefined;
  readonly sum: Imported;
  readonly damaged: (damage: JournalContents["damage"]) => void;
  readonly complain: (text: string) => void;
}

/** Directories, log files, and - for standard input. */
export async function importJournals(
  paths: readonly string[],
  options: ImportOptions,
  stdin: () => Promise<string>,
): Promise<void> {
  for (const path of paths) {
    if (path !== "-" && (await stat(path)).isDirectory()) await importDirectory(path, options);
    else await importLines(path === "-" ? await stdin() : await readFile(path, "utf8"), options);
  }
}

/** A Makegood that does nothing but drain that directory. */
async function importDirectory(directory: string, how: ImportOptions): Promise<void> {
  const { sealKey, sum } = how;
  const { options, release } = await how.open();
  try {
    const journal = createJournal({ directory, sealKey });
    const found = (await readJournal({ directory, sealKey })).entries;
    const names = new Set(found.flatMap(({ entry }) => (entry ? [entry.message.topic] : [])));
    const mg = await createMakegood({
      ...options,
      journal,
      topics: how.topicsOf(names),
      // The loop may be faster than the call below: all that was moved counts, by either of them.
      onEvent: (event) => {
        if (event.type !== "drained") return;
        sum.moved += event.moved;
        sum.duplicates += event.duplicates;
        sum.conflicts += event.conflicts;
      },
    });
    try {
      await how.prepare(mg.store);
      await mg.ladder.drain();
    } finally {
      await mg.close();
      await journal.close();
    }
    const { entries, damage } = await readJournal({ directory });
    how.damaged(damage);
    sum.left += entries.filter(({ state }) => state !== "quarantined").length + lostIn(damage);
  } finally {
    await release();
  }
}

/** How many of them may have been entries: a torn tail was promised to nobody. */
export function lostIn(damage: JournalContents["damage"]): number {
  return damage.filter(({ kind }) => kind === "corrupt_record").length;
}

/** Lines go through a journal of their own: what the store does not take is then kept, too, and not only a line in a file again. */
async function importLines(text: string, options: ImportOptions): Promise<void> {
  const { sealKey, sum, complain } = options;
  const sealer = sealKey === undefined ? null : createSealer(sealKey, systemRandom);
  const entries: HandedDown[] = [];
  for (const [n, line] of text.split("\n").entries()) {
    const read = readLine(line, sealer);
    if (read?.ok) entries.push(read.entry);
    else if (read) {
      sum.unreadable++;
      complain(`line ${n + 1}: ${read.fault}`);
    }
  }
  if (entries.length === 0) return;
  const directory = await mkdtemp(join(tmpdir(), "makegood-import-"));
  const journal = createJournal({ directory, sealKey, bytesMax: Number.MAX_SAFE_INTEGER });
  await journal.open();
  const kept = await Promise.all(entries.map((entry) => journal.append(entry)));
  await journal.close();
  const refused = kept.find((one) => one.kind === "refused");
  if (refused?.kind === "refused") throw new Error(`the lines could not be read into ${directory}: ${refused.error}`);
  for (const [i, { kind }] of kept.entries()) {
    if (kind !== "conflict") continue;
    sum.unreadable++;
    complain(`two lines have the id ${entries[i]?.message.id} and not the same payload: the first one counts`);
  }
  const before = sum.left + sum.conflicts;
  await importDirectory(directory, options);
  if (sum.left + sum.conflicts === before) await rm(directory, { recursive: true, force: true });
  else complain(`what was not moved is kept in ${directory}`);
}
