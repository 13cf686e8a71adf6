/**
 * `makegood journal list|import|export`: what the fallback ladder's last rungs hold, seen, moved into the store, or printed.
 * Import takes journal directories and the lines that the ERROR log got when only memory had a message; it only adds what is
 * absent.
 */
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { createMakegood } from "../../create.ts";
import { errorText } from "../../message/errors.ts";
import { createLog } from "../../observe/log.ts";
import { systemClock } from "../../platform/clock.ts";
import { systemRandom } from "../../platform/random.ts";
import { TOPIC as BILLING } from "../../presets/settlement/topic.ts";
import type { Config } from "../../server/config/config.ts";
import { openStore } from "../../server/open-store.ts";
import { declareFileTopics, makegoodOptions } from "../../server/serve.ts";
import { createJournal, type JournalContents, type ListedEntry, readJournal } from "../../store/journal/index.ts";
import { readLine } from "../../store/ladder/format/error-line.ts";
import { entryJson, type HandedDown } from "../../store/ladder/format/handed-down.ts";
import { createSealer } from "../../store/ladder/format/seal.ts";
import { topic } from "../../topic/topic.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { complain, type Io, printJson, say, table } from "../io.ts";
import type { CommandContext, Run } from "../run.ts";

interface Options {
  readonly directory?: string;
}

const DIRECTORY = "instead of MAKEGOOD_JOURNAL_DIR";

export function journalCommand(program: Command, run: Run): void {
  const journal = program
    .command("journal")
    .description("the local journal, the last resort of deliver(); always on this machine");
  journal
    .command("list")
    .description("what waits in it, what is in quarantine, what is damaged; touches nothing")
    .option("--directory <path>", DIRECTORY)
    .action((options: Options) => run((context) => withContents(context, options, list)));
  journal
    .command("export")
    .description("every entry that can be read, one JSON line each, as `journal import` reads it; touches nothing")
    .option("--directory <path>", DIRECTORY)
    .action((options: Options) => run((context) => withContents(context, options, exportAll)));
  journal
    .command("import [paths...]")
    .description(
      "move entries into the store if they are absent: from journal directories, and from log files (- is standard input)",
    )
    .addHelpText("after", "\nWithout a path: the directory of MAKEGOOD_JOURNAL_DIR. Sealed payloads need MAKEGOOD_SEAL_KEY.")
    .action((paths: string[]) => run((context) => importAll(context, paths)));
}

type Shown = (context: CommandContext, contents: JournalContents) => ExitCode;

async function withContents(context: CommandContext, { directory }: Options, show: Shown): Promise<ExitCode> {
  const { io, config } = context;
  const path = directory ?? config.journal_dir;
  if (path === null) {
    complain(io, "makegood: which journal? Give --directory or MAKEGOOD_JOURNAL_DIR");
    return EXIT.usage;
  }
  try {
    return show(context, await readJournal({ directory: path, sealKey: config.seal_key ?? undefined }));
  } catch (error) {
    complain(io, `makegood: ${errorText(error)}`);
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? EXIT.notFound : EXIT.failed;
  }
}

const list: Shown = ({ io, json }, { entries, damage, bytes }) => {
  if (json) {
    const data = entries.map(({ id, state, reason, entry, file, offset }) => ({
      id,
      state,
      reason,
      ...fieldsOf(entry),
      file,
      offset,
    }));
    printJson(io, JSON.stringify({ data, damage, bytes, next_cursor: null }));
    return EXIT.ok;
  }
  if (entries.length === 0) say(io, "nothing waits in the journal");
  else {
    const row = ({ id, state, reason, entry }: ListedEntry) => {
      const { topic = "", key = null, at = "" } = fieldsOf(entry);
      return [id, state, topic, key ?? "", at, reason ?? ""];
    };
    table(io, ["id", "state", "topic", "key", "at", "reason"], entries.map(row));
  }
  tellDamage(io, damage);
  return EXIT.ok;
};

/** Returns how many of them may have been entries: a torn tail was promised to nobody. */
function tellDamage(io: Io, damage: JournalContents["damage"]): number {
  for (const { kind, file, offset, bytes } of damage)
    complain(io, `${kind.replace("_", " ")}: ${file} at ${offset}, ${bytes} bytes`);
  return damage.filter(({ kind }) => kind === "corrupt_record").length;
}

function fieldsOf(entry: HandedDown | null): { topic?: string; key?: string | null; tenant_id?: string | null; at?: string } {
  if (!entry) return {};
  const { topic, key, tenantId } = entry.message;
  return { topic, key, tenant_id: tenantId, at: new Date(entry.atMs).toISOString() };
}

const exportAll: Shown = ({ io }, { entries, damage }) => {
  let unread = tellDamage(io, damage);
  for (const { id, entry, reason, file, offset } of entries) {
    if (entry) printJson(io, `{"makegood_entry":${entryJson(entry)}}`);
    else {
      unread++;
      complain(io, `makegood: ${id || "an entry"} in ${file} at ${offset} is left out: ${reason}`);
    }
  }
  return unread === 0 ? EXIT.ok : EXIT.failed;
};

interface Imported {
  moved: number;
  duplicates: number;
  conflicts: number;
  left: number;
  unreadable: number;
}

async function importAll(context: CommandContext, paths: readonly string[]): Promise<ExitCode> {
  const { io, config, json } = context;
  const from = paths.length > 0 ? paths : config.journal_dir === null ? [] : [config.journal_dir];
  if (from.length === 0) {
    complain(io, "makegood: import what? Give a journal directory, a log file or - for standard input");
    return EXIT.usage;
  }
  const sum: Imported = { moved: 0, duplicates: 0, conflicts: 0, left: 0, unreadable: 0 };
  try {
    for (const path of from) {
      const isDirectory = path !== "-" && (await stat(path)).isDirectory();
      if (isDirectory) await importDirectory(io, config, path, sum);
      else await importLines(io, config, path, sum);
    }
  } catch (error) {
    complain(io, `makegood: ${errorText(error)}`);
    return EXIT.failed;
  }
  const { moved, duplicates, conflicts, left, unreadable } = sum;
  if (json) printJson(io, JSON.stringify(sum));
  else {
    say(io, `${moved} moved into the store, ${duplicates} of them were there already`);
    if (conflicts > 0) complain(io, `${conflicts} contradict what is stored and stay in quarantine`);
    if (left > 0) complain(io, `${left} stay where they are: their process runs, their topic is unknown, or they are damaged`);
    if (unreadable > 0) complain(io, `${unreadable} lines could not be read back`);
  }
  if (conflicts > 0) return EXIT.conflict;
  return left + unreadable > 0 ? EXIT.failed : EXIT.ok;
}

/** A Makegood that does nothing but drain that directory. */
async function importDirectory(io: Io, config: Config, directory: string, sum: Imported): Promise<void> {
  const log = createLog({ clock: systemClock, format: "text", level: "error", write: (line) => io.err(line) });
  const opened = await openStore({ config, log });
  try {
    const journal = createJournal({ directory, sealKey: config.seal_key ?? undefined });
    const found = (await readJournal({ directory, sealKey: config.seal_key ?? undefined })).entries;
    // Settlement declares its topic in code: what its journal holds must not wait for that (N11).
    const billing = found.some(({ entry }) => entry?.message.topic === BILLING);
    const topics = billing ? [topic(BILLING, { retry: "settlement", ordering: "none" })] : [];
    const counted = { moved: 0, duplicates: 0, conflicts: 0 };
    const mg = await createMakegood({
      ...makegoodOptions(config, opened.store, systemClock),
      journal,
      topics,
      // The loop may be faster than the call below: all that was moved counts, by either of them.
      onEvent: (event) => {
        if (event.type !== "drained") return;
        counted.moved += event.moved;
        counted.duplicates += event.duplicates;
        counted.conflicts += event.conflicts;
      },
    });
    try {
      await declareFileTopics(mg.store, config.topics, log);
      await mg.ladder.drain();
    } finally {
      await mg.close();
      await journal.close();
    }
    sum.moved += counted.moved;
    sum.duplicates += counted.duplicates;
    sum.conflicts += counted.conflicts;
    const { entries, damage } = await readJournal({ directory });
    sum.left += entries.filter(({ state }) => state !== "quarantined").length + tellDamage(io, damage);
  } finally {
    await opened.release();
  }
}

/** Lines go through a journal of their own: what the store does not take is then kept, too, and not only a line in a file again. */
async function importLines(io: Io, config: Config, path: string, sum: Imported): Promise<void> {
  const sealer = config.seal_key === null ? null : createSealer(config.seal_key, systemRandom);
  const text = path === "-" ? ((await io.stdin())?.toString("utf8") ?? "") : await readFile(path, "utf8");
  const entries: HandedDown[] = [];
  for (const [n, line] of text.split("\n").entries()) {
    const read = readLine(line, sealer);
    if (read?.ok) entries.push(read.entry);
    else if (read) {
      sum.unreadable++;
      complain(io, `makegood: line ${n + 1}: ${read.fault}`);
    }
  }
  if (entries.length === 0) return;
  const directory = await mkdtemp(join(tmpdir(), "makegood-import-"));
  const journal = createJournal({ directory, sealKey: config.seal_key ?? undefined, bytesMax: Number.MAX_SAFE_INTEGER });
  await journal.open();
  const kept = await Promise.all(entries.map((entry) => journal.append(entry)));
  await journal.close();
  const refused = kept.find((one) => one.kind === "refused");
  if (refused?.kind === "refused") throw new Error(`the lines could not be read into ${directory}: ${refused.error}`);
  for (const [i, { kind }] of kept.entries()) {
    if (kind !== "conflict") continue;
    sum.unreadable++;
    complain(io, `makegood: two lines have the id ${entries[i]?.message.id} and not the same payload: the first one counts`);
  }
  const before = sum.left + sum.conflicts;
  await importDirectory(io, config, directory, sum);
  if (sum.left + sum.conflicts === before) await rm(directory, { recursive: true, force: true });
  else complain(io, `makegood: what was not moved is kept in ${directory}`);
}
