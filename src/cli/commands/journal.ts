/** `makegood journal`: what the fallback ladder's last rungs hold, seen, moved into the store, or printed. */
import { type Imported, importJournals, lostIn } from "../../create/import-journal.ts";
import { errorText } from "../../message/errors.ts";
import { createLog } from "../../observe/log.ts";
import { systemClock } from "../../platform/clock.ts";
import { TOPIC as BILLING } from "../../presets/settlement/topic.ts";
import { openStore } from "../../server/open-store.ts";
import { declareFileTopics, makegoodOptions } from "../../server/serve.ts";
import { type JournalContents, type ListedEntry, readJournal } from "../../store/journal/index.ts";
import { entryJson } from "../../store/ladder/format/handed-down.ts";
import { topic } from "../../topic/topic.ts";
import { type AddCommand, type CommandContext, family } from "../conversation.ts";
import { complain, EXIT, type ExitCode, type Io, printJson, Stop, say, tell } from "../io.ts";
import { listing } from "../table.ts";

const reads =
  (name: string, about: string, show: typeof list): AddCommand =>
  (parent, run) =>
    parent
      .command(name)
      .description(about)
      .option("--directory <path>", "instead of MAKEGOOD_JOURNAL_DIR")
      .action(({ directory }) => run(async (context) => show(context, await contentsOf(context, directory))));

const imports: AddCommand = (parent, run) =>
  parent
    .command("import [paths...]")
    .description("move entries into the store if absent: from journal directories, and from log files (- is standard input)")
    .addHelpText("after", "\nWithout a path: the directory of MAKEGOOD_JOURNAL_DIR. Sealed payloads need MAKEGOOD_SEAL_KEY.")
    .action((paths: string[]) => run((context) => importAll(context, paths)));

export const commands = family("journal", "the local journal, the last resort of deliver(); always on this machine", [
  reads("list", "what waits in it, what is in quarantine, what is damaged; touches nothing", list),
  reads("export", "every entry that can be read, one JSON line each, as `journal import` reads it; touches nothing", exportAll),
  imports,
]);

async function contentsOf({ config }: CommandContext, given: string | undefined): Promise<JournalContents> {
  const directory = given ?? config.journal_dir;
  if (directory === null) throw new Stop("which journal? Give --directory or MAKEGOOD_JOURNAL_DIR");
  return readJournal({ directory, sealKey: config.seal_key ?? undefined }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT" ? new Stop(errorText(error), EXIT.notFound) : error;
  });
}

const entryList = listing<ReturnType<typeof rowOf>>(["id", "state", "topic", "key", "at", "reason"]);

function list(context: CommandContext, { entries, damage, bytes }: JournalContents): ExitCode {
  const { io } = context;
  const data = entries.map(rowOf);
  return tell(context, { data, damage, bytes, next_cursor: null }, () => {
    if (data.length === 0) say(io, "nothing waits in the journal");
    else entryList(io, { data });
    tellDamage(io, damage);
  });
}

function tellDamage(io: Io, damage: JournalContents["damage"]): void {
  for (const { kind, file, offset, bytes } of damage)
    complain(io, `${kind.replace("_", " ")}: ${file} at ${offset}, ${bytes} bytes`);
}

function rowOf({ entry, ...listed }: ListedEntry) {
  const { topic: name, key, tenantId } = entry?.message ?? {};
  return { ...listed, topic: name, key, tenant_id: tenantId, at: entry ? new Date(entry.atMs).toISOString() : undefined };
}

function exportAll({ io }: CommandContext, { entries, damage }: JournalContents): ExitCode {
  tellDamage(io, damage);
  let unread = lostIn(damage);
  for (const { id, entry, reason, file, offset } of entries) {
    if (entry) printJson(io, `{"makegood_entry":${entryJson(entry)}}`);
    else {
      unread++;
      complain(io, `makegood: ${id || "an entry"} in ${file} at ${offset} is left out: ${reason}`);
    }
  }
  return unread === 0 ? EXIT.ok : EXIT.failed;
}

async function importAll(context: CommandContext, paths: readonly string[]): Promise<ExitCode> {
  const { io, config } = context;
  const from = paths.length > 0 ? paths : config.journal_dir === null ? [] : [config.journal_dir];
  const sum: Imported = { moved: 0, duplicates: 0, conflicts: 0, left: 0, unreadable: 0 };
  const log = createLog({ clock: systemClock, format: "text", level: "error", write: (line) => io.err(line) });
  if (from.length === 0) throw new Stop("import what? Give a journal directory, a log file or - for standard input");
  const ways: Parameters<typeof importJournals>[1] = {
    async open() {
      const { store, release } = await openStore(config, log);
      return { options: makegoodOptions(config, store, systemClock), release };
    },
    prepare: (store) => declareFileTopics(store, config.topics, log),
    // Settlement declares its topic in code: what its journal holds must not wait for that (N11).
    topicsOf: (names) => (names.has(BILLING) ? [topic(BILLING, { retry: "settlement", ordering: "none" })] : []),
    sealKey: config.seal_key ?? undefined,
    sum,
    damaged: (damage) => tellDamage(io, damage),
    complain: (text) => complain(io, `makegood: ${text}`),
  };
  await importJournals(from, ways, async () => String((await io.stdin()) ?? ""));
  const { moved, duplicates, conflicts, left, unreadable } = sum;
  tell(context, sum, () => {
    say(io, `${moved} moved into the store, ${duplicates} of them were there already`);
    if (conflicts > 0) complain(io, `${conflicts} contradict what is stored and stay in quarantine`);
    if (left > 0) complain(io, `${left} stay where they are: their process runs, their topic is unknown, or they are damaged`);
    if (unreadable > 0) complain(io, `${unreadable} lines could not be read back`);
  });
  if (conflicts > 0) return EXIT.conflict;
  return left + unreadable > 0 ? EXIT.failed : EXIT.ok;
}
