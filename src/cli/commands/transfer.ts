/** `makegood export` and `makegood import`: everything of a store in one file, and back into any store. Always on the store itself. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { InvalidArgumentError, Option } from "commander";
import { systemClock } from "../../platform/clock.ts";
import { openStore } from "../../server/open-store.ts";
import { RECORD_KINDS, type RecordKind } from "../../store/movable-records.ts";
import type { RedisStore } from "../../store/redis/index.ts";
import type { Store } from "../../store/store.ts";
import { type Exported, exportStore, whyAtWork } from "../../transfer/export-store.ts";
import type { RecordSum } from "../../transfer/format.ts";
import { type ImportedFile, importFile } from "../../transfer/import-file.ts";
import type { ImportedRecords } from "../../transfer/import-records.ts";
import type { Access, AddCommand, CommandContext } from "../conversation.ts";
import { complain, EXIT, type ExitCode, type Io, Stop, say, tell } from "../io.ts";
import { refuseNowhere, warnings } from "../local.ts";

const STORE = () => new Option("--store <engine>", "instead of MAKEGOOD_STORE").choices(["postgres", "redis"]);
const FILE_NAME = "makegood-export.ndjson";

const WITHOUT = () =>
  new Option("--without <kinds>", `leave records out, of: ${RECORD_KINDS.join(",")}`).argParser((given: string) => {
    const kinds = given.split(",").map((one) => one.trim());
    const unknown = kinds.find((one) => !RECORD_KINDS.some((kind) => kind === one));
    if (unknown !== undefined) throw new InvalidArgumentError(`${unknown} is none of ${RECORD_KINDS.join(", ")}`);
    return kinds as RecordKind[];
  });

interface ExportFlags extends Readonly<Partial<Record<"all" | "live" | "secrets" | "dryRun", true>>> {
  readonly store?: string;
  readonly without?: readonly RecordKind[];
}

const exporting: AddCommand = (program, run) =>
  program
    .command("export <path>")
    .description("write topics, every message that is not settled, recovery, audit and usage to a file (or into a directory)")
    .option("--all", "also what was delivered, resolved or discarded, so that its keys go on protecting")
    .option("--secrets", "also the secrets of sinks; without it they are named as missing")
    .option("--live", "although workers are at work: a copy to look at, not to move with")
    .option("--dry-run", "say what would be written and whether the store is at rest")
    .addOption(WITHOUT())
    .addOption(STORE())
    .action((path: string, flags: ExportFlags) => run((context) => exportTo(context, path, flags), on(flags)));

const importing: AddCommand = (program, run) =>
  program
    .command("import [file]")
    .description("put into the store what is absent there: a file of `export`, or an earlier layout; see also `journal import`")
    .option("--dlq-port", "the settlement port's entries, terminal records and quarantine, in the Redis of REDIS_URL")
    .option("--prefix <prefix>", "the port's prefix", "finn:hounfour:dlq")
    .option("--dry-run", "count, and change nothing")
    .addOption(WITHOUT())
    .addOption(STORE())
    .action((file: string | undefined, { prefix, dryRun, store, without, ...what }) =>
      run(async (context) => {
        if ((file === undefined) === (Object.keys(what).length === 0))
          throw new Stop("import what? Give a file of `export`, or --dlq-port");
        if (file === undefined) return (await import("./redis.ts")).importPort(context, { prefix, dryRun });
        return importFrom(context, file, dryRun === true, without);
      }, on({ store })),
    );

export const commands = [exporting, importing];

const on = ({ store }: { store?: string }) => (store === undefined ? {} : { flags: { store } });

async function withStore<T>({ io, config }: CommandContext, access: Access, use: (store: Store) => Promise<T>): Promise<T> {
  if (access !== "up") await refuseNowhere(config);
  const { store, release } = await openStore(config, warnings(io), undefined, access);
  try {
    await store.open();
    return await use(store);
  } finally {
    await store.close();
    await release();
  }
}

/** How far it is, on a terminal only. */
function progress({ io, json }: CommandContext, word: string): (done: number) => void {
  let saidMs = systemClock.monotonicMs();
  return (done) => {
    if (!io.tty || json || systemClock.monotonicMs() - saidMs < 1_000) return;
    saidMs = systemClock.monotonicMs();
    complain(io, `${done} ${word} so far`);
  };
}

async function exportTo(context: CommandContext, given: string, flags: ExportFlags): Promise<ExitCode> {
  const { io, config } = context;
  const found = await stat(given).catch(() => null);
  const path = found?.isDirectory() ? join(given, FILE_NAME) : given;
  if (
    await stat(path).then(
      (file) => file.isFile(),
      () => false,
    )
  )
    throw new Stop(`${path} is there already: move it away`, EXIT.conflict);
  const { all = false, live = false, secrets = false } = flags;
  return withStore(context, "look", async (store) => {
    if (flags.dryRun) return wouldExport(context, store, all);
    const lost = (await (store as Partial<RedisStore>).quarantined?.())?.found.map(({ id }) => id) ?? [];
    const unreadable = lost.length;
    const how = { all, live, secrets, unreadable, without: flags.without, progress: progress(context, "messages") };
    const made = await exportStore({ store, path, clock: systemClock, ...how });
    tell(context, { path, live, ...exportedJson(made) }, () => {
      say(io, `${made.messages} messages of ${made.topics} topics are in ${path}; hash ${made.hash}`);
      for (const [kind, rows] of countsByKind(made.records ?? [])) say(io, `${rows} rows of ${kind}`);
      if (made.inFlight > 0) say(io, `${made.inFlight} were in flight and are written as to be tried again`);
      if (!live) say(io, "start nothing on this store any more: what is in the file would be delivered twice");
    });
    if (config.store === "redis" && config.database_url !== null)
      complain(io, "makegood: recovery, audit and usage beside Redis are in DATABASE_URL and not in the file");
    for (const [topic, what] of Object.entries(made.missing))
      complain(io, `makegood: not in the file: ${what.join(", ")} of topic ${topic}`);
    if (live)
      complain(io, "makegood: --live: what was delivered meanwhile may be in the file as pending; import it only to look at it");
    if (unreadable > 0)
      complain(io, `makegood: not in the file, because they cannot be read any more: ${lost.slice(0, 20).join(", ")}`);
    return unreadable > 0 ? EXIT.failed : EXIT.ok;
  });
}

function countsByKind(records: readonly RecordSum[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { kind, count } of records) counts.set(kind, (counts.get(kind) ?? 0) + count);
  return counts;
}

const exportedJson = ({ inFlight, ...made }: Exported) => ({ ...made, in_flight: inFlight });

async function wouldExport(context: CommandContext, store: Store, all: boolean): Promise<ExitCode> {
  const counts = (await store.counts({ delivered: all })).filter(
    ({ resolution }) => all || resolution === null || resolution === "open",
  );
  const data = counts.map(({ topic, status, resolution, count }) => ({ topic, status, resolution, count }));
  const atWork = await whyAtWork(store);
  const sum = data.reduce((messages, { count }) => messages + count, 0);
  tell(context, { data, messages: sum, at_work: atWork, dry_run: true }, () => {
    for (const { topic, status, resolution, count } of data) say(context.io, `${topic}  ${resolution ?? status}  ${count}`);
    say(context.io, `${sum} messages would be written; ${atWork === null ? "the store is at rest" : `refused: ${atWork}`}`);
  });
  return atWork === null ? EXIT.ok : EXIT.conflict;
}

async function importFrom(
  context: CommandContext,
  path: string,
  dryRun: boolean,
  without: readonly RecordKind[] | undefined,
): Promise<ExitCode> {
  if (
    !(await stat(path).then(
      (file) => file.isFile(),
      () => false,
    ))
  )
    throw new Stop(`${path} is no file`, EXIT.notFound);
  return withStore(context, dryRun ? "look" : "up", async (store) => {
    const far = { checked: progress(context, "checked"), put: progress(context, "put"), compared: progress(context, "compared") };
    const done = await importFile({ store, path, dryRun, without, progress: (step, count) => far[step](count) });
    tell(context, importedJson(done, dryRun), () => sayImported(context.io, done, dryRun));
    for (const { id, there } of done.contradictions) complain(context.io, `makegood: ${id} contradicts ${there}, which is there`);
    if (done.conflict > 0) return EXIT.conflict;
    return done.whole ? EXIT.ok : EXIT.failed;
  });
}

function importedJson({ compared, contradictions, topics, records, ...done }: ImportedFile, dryRun: boolean) {
  const wire = <T extends { readonly movedOn: number }>({ movedOn, ...rest }: T) => ({ ...rest, moved_on: movedOn });
  const found = { compared: compared && wire(compared), records: records.map(wire) };
  return { ...done, topics, contradictions, ...found, dry_run: dryRun };
}

/** What is there of each kind, table by table where something is missing. */
function sayRecords(io: Io, records: readonly ImportedRecords[]): void {
  for (const [kind, rows] of countsByKind(records)) {
    const of = records.filter((one) => one.kind === kind);
    const [same, moved] = [of.reduce((sum, one) => sum + one.same, 0), of.reduce((sum, one) => sum + one.movedOn, 0)];
    say(io, `${kind}: ${rows} rows, ${same} the same, ${moved} moved on since, ${rows - same - moved} absent or wrong`);
  }
  for (const { table, absent, wrong } of records.filter((one) => one.absent + one.wrong > 0))
    complain(io, `${table}: ${absent} absent, ${wrong} wrong`);
}

function sayImported(io: Io, done: ImportedFile, dryRun: boolean): void {
  const { messages, put, present, duplicate, conflict, topics, compared } = done;
  say(io, `${put} of ${messages} messages ${dryRun ? "would be put" : "put"}, ${present} were there already`);
  if (duplicate > 0) say(io, `${duplicate} are there under another id, with the same key and payload`);
  if (conflict > 0) complain(io, `${conflict} contradict what is there, which stays`);
  if (topics.made.length > 0) say(io, `${topics.made.length} topics ${dryRun ? "would be made" : "made"}`);
  if (topics.paused.length > 0) say(io, `paused: ${topics.paused.join(", ")}; \`makegood topics resume\` lets them go on`);
  for (const [topic, what] of Object.entries(topics.missing))
    complain(io, `topic ${topic} misses ${what.join(", ")}: put it again with them`);
  if (topics.different.length > 0) complain(io, `topics with another definition, which stays: ${topics.different.join(", ")}`);
  sayRecords(io, done.records);
  if (!compared) return;
  say(
    io,
    `compared: ${compared.same} the same, ${compared.movedOn} moved on since, ${compared.absent} absent, ${compared.wrong} wrong`,
  );
  say(io, `hash of the file ${done.hash}, of what is there ${compared.hash}`);
}
