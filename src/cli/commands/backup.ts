/** `makegood backup` and `makegood restore`: the embedded server's data while it serves, and back; proven by what conservation remembers. */
import { isMakegoodError } from "../../message/errors.ts";
import { systemClock } from "../../platform/clock.ts";
import { storeUrl } from "../../server/open-store.ts";
import type { Conservation, Position } from "../../store/conservation.ts";
import { backupEmbedded, checkBackup, createPostgresStore, holdsData, restoreEmbedded } from "../../store/postgres/index.ts";
import type { AddCommand, CommandContext } from "../conversation.ts";
import { complain, EXIT, type ExitCode, Stop, say, tell } from "../io.ts";
import { warnings } from "../local.ts";

const backing: AddCommand = (program, run) =>
  program
    .command("backup <directory>")
    .description("copy the data of the embedded server into a new directory, also while it serves")
    .action((directory: string) => run((context) => backup(context, directory)));

const restoring: AddCommand = (program, run) =>
  program
    .command("restore <directory>")
    .description("put a backup into an empty MAKEGOOD_DATA_DIR, start its server and prove it")
    .option("--dry-run", "compare every file with its hash, and change nothing")
    .action((directory: string, { dryRun }) => run((context) => restore(context, directory, dryRun === true)));

export const commands = [backing, restoring];

function requireEmbedded({ config }: CommandContext): void {
  if (config.store === "postgres" && config.database_url === null) return;
  throw new Stop(
    "this is for the embedded server: a PostgreSQL of your own has pg_basebackup, Redis its own files; `makegood export` is for any store",
  );
}

/** Of a pass just made; what was accepted before the backup is in it. */
const PASS_MS = 5_000;

interface Proof {
  readonly schema: string;
  readonly position: Position | null;
}

/** `kept` is null where the schema is of an earlier version: it stays as it is, or there would be no way back to that version. */
async function withServer<T>(
  { io, config }: CommandContext,
  use: (url: string, kept: Conservation | null) => Promise<T>,
): Promise<T> {
  const { url, release } = await storeUrl(config, warnings(io));
  const store = createPostgresStore({ url, schema: config.schema, migrate: "check" });
  try {
    const kept = await store.open().then(
      () => store.conservation,
      (error: unknown) => {
        if (isMakegoodError(error) && error.code === "schema_outdated") return null;
        throw error;
      },
    );
    return await use(url, kept);
  } finally {
    await store.close();
    await release();
  }
}

async function backup(context: CommandContext, directory: string): Promise<ExitCode> {
  const { io, config } = context;
  requireEmbedded(context);
  if (!(await holdsData(config.data_dir))) throw new Stop(`${config.data_dir} holds no data (MAKEGOOD_DATA_DIR)`, EXIT.notFound);
  return withServer(context, async (url, kept) => {
    await kept?.pass({ reach: "slice", budgetMs: PASS_MS });
    const proof: Proof = { schema: config.schema, position: (await kept?.position()) ?? null };
    const made = await backupEmbedded({ url, dataDir: config.data_dir, target: directory, clock: systemClock, proof });
    const { files, from_lsn, to_lsn } = made;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const accepted = proof.position?.accepted ?? null;
    return tell(context, { directory, files: files.length, bytes, from_lsn, to_lsn, accepted }, () =>
      say(
        io,
        `${files.length} files, ${(bytes / 1_048_576).toFixed(1)} MiB, are in ${directory}; ${accepted ?? "an unknown number of"} messages were accepted before it began`,
      ),
    );
  });
}

async function restore(context: CommandContext, directory: string, dryRun: boolean): Promise<ExitCode> {
  const { io, config } = context;
  requireEmbedded(context);
  if (dryRun) {
    const { files, made_at } = await checkBackup(directory);
    return tell(context, { directory, files: files.length, made_at, dry_run: true }, () =>
      say(io, `${directory} of ${made_at} is whole: ${files.length} files`),
    );
  }
  const { proof, made_at } = await restoreEmbedded({ source: directory, dataDir: config.data_dir, clock: systemClock });
  return withServer(context, (_, kept) => prove(context, kept, made_at, proof as Proof));
}

const EARLIER = "its schema is of an earlier version; start that one, or `makegood migrate up`, then `makegood verify --full`";

/** The ledger reaches at least as far as when the backup began, with the same sums, and what is there agrees with it. */
async function prove(
  context: CommandContext,
  kept: Conservation | null,
  madeAt: string,
  { schema, position }: Proof,
): Promise<ExitCode> {
  const { io, config } = context;
  if (kept === null) {
    tell(context, { made_at: madeAt, data_dir: config.data_dir, proven: false, state: "unknown", reason: EARLIER }, () =>
      say(io, `restored the backup of ${madeAt} into ${config.data_dir}; not proven: ${EARLIER}`),
    );
    return EXIT.notProven;
  }
  const found = schema === config.schema && position ? await kept.positionAt(position.pass) : null;
  await kept.pass({ reach: "full" });
  const { state, reason, totals, divergencesTotal } = await kept.conclude({});
  const reached = position !== null && JSON.stringify(found) === JSON.stringify(position);
  const proven = reached && state === "whole";
  tell(
    context,
    { made_at: madeAt, data_dir: config.data_dir, proven, reached, state, reason, totals, divergences: divergencesTotal },
    () => {
      say(io, `restored the backup of ${madeAt} into ${config.data_dir}`);
      if (totals) say(io, `${totals.accepted} messages accepted, ${totals.live} of them not settled; conservation is ${state}`);
    },
  );
  if (!proven)
    complain(
      io,
      `makegood: not proven: ${reached ? (reason ?? `${divergencesTotal} divergences`) : "what was known when the backup began was not found"}`,
    );
  return proven ? EXIT.ok : EXIT.failed;
}
