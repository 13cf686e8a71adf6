/** `makegood migrate`: the database schema, applied, looked at, or printed for a database administrator to apply. */
import { Option } from "commander";
import { storeUrl } from "../../server/open-store.ts";
import * as postgres from "../../store/postgres/index.ts";
import { type AddCommand, type CommandContext, family } from "../conversation.ts";
import { EXIT, type ExitCode, say, tell } from "../io.ts";
import { refuseNowhere, warnings } from "../local.ts";
import { listing } from "../table.ts";

type Options = { readonly set?: string; readonly to?: string };

const setOf = ({ set = "" }: Options) => postgres.OPTIONAL_SETS.get(set) ?? postgres.KERNEL_SET;

const SET = new Option("--set <name>", "tables that only a preset needs, on top of the kernel's");
const TO = new Option("--to <revision>", "only up to this one, by its number or name");

const below =
  (name: string, about: string, work: typeof up, ...options: readonly Option[]): AddCommand =>
  (parent, run) => {
    const made = parent.command(name).description(about);
    for (const option of [SET.choices([...postgres.OPTIONAL_SETS.keys()]), ...options]) made.addOption(option);
    made.action((given) => run((context) => work(context, given)));
  };

export const commands = family("migrate", "the database schema; always on the database itself, never over MAKEGOOD_URL", [
  below("up", "apply what is missing; safe when several do it at once", up, TO),
  below("status", "what has been applied; exit code 1 when something is missing", status),
  below("print", "everything as one SQL script, without touching a database", async (context, options) => {
    const sql = postgres.printMigrations(context.config.schema, setOf(options));
    return tell(context, { sql }, () => context.io.out(sql.endsWith("\n") ? sql : `${sql}\n`));
  }),
]);

async function up(context: CommandContext, options: Options): Promise<ExitCode> {
  const { io, config } = context;
  const applied = await connected(context, (to) => postgres.migrateUp(to, config.schema, setOf(options), options.to));
  return tell(context, { applied }, () => {
    if (applied.length === 0) say(io, `nothing to do: the schema is up to ${options.to ?? "date"}`);
    else say(io, ...applied.map((name) => `applied ${name}`));
  });
}

const versionOf = ({ version }: { version: number }): string => String(version).padStart(4, "0");
const stateList = listing<postgres.MigrationState>([["version", versionOf], "name", "applied", ["at", "appliedAt"]]);

async function status(context: CommandContext, options: Options): Promise<ExitCode> {
  const { io, config, init } = context;
  if (!init) await refuseNowhere(config);
  const states = await connected(context, (to) => postgres.migrationStatus(to, config.schema, setOf(options)));
  const data = states.map(({ appliedAt, ...state }) => ({ ...state, applied_at: appliedAt }));
  const whole = data.every(({ applied }) => applied);
  tell(context, { data, next_cursor: null }, () => {
    stateList(io, { data: states });
    if (!whole) say(io, "", "`makegood migrate up` applies what is missing");
  });
  return whole ? EXIT.ok : EXIT.failed;
}

async function connected<T>({ io, config }: CommandContext, use: (to: postgres.Connection) => Promise<T>): Promise<T> {
  const { url, release } = await storeUrl(config, warnings(io));
  const connection = postgres.createConnection({ url, poolMax: 2 });
  try {
    await connection.open();
    return await use(connection);
  } finally {
    await connection.close();
    await release();
  }
}
