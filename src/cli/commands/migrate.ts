/**
 * `makegood migrate up|status|print`: the database schema, applied, looked at, or printed for a database administrator to apply.
 */
import { type Command, Option } from "commander";
import { storeUrl } from "../../server/open-store.ts";
import {
  type Connection,
  createConnection,
  KERNEL_SET,
  migrateUp,
  migrationStatus,
  OPTIONAL_SETS,
  printMigrations,
} from "../../store/postgres/index.ts";
import { report } from "../conversation.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { printJson, say } from "../io.ts";
import { refuseNowhere, warnings } from "../local.ts";
import type { CommandContext, Run } from "../run.ts";
import { listing } from "../table.ts";

interface Options {
  readonly set?: string;
  readonly to?: string;
}

const setOf = ({ set = "" }: Options) => OPTIONAL_SETS.get(set) ?? KERNEL_SET;

export function migrateCommand(program: Command, run: Run): void {
  const migrate = program
    .command("migrate")
    .description("the database schema; always on the database itself, never over MAKEGOOD_URL");
  const below = (name: string, description: string, work: (context: CommandContext, options: Options) => Promise<ExitCode>) => {
    const set = new Option("--set <name>", "tables that only a preset needs, on top of the kernel's");
    const command = migrate
      .command(name)
      .description(description)
      .addOption(set.choices([...OPTIONAL_SETS.keys()]));
    return command.action((options: Options) =>
      run((context) => work(context, options).catch((error: unknown) => report(context, error))),
    );
  };
  below("up", "apply what is missing; safe when several do it at once", up).option(
    "--to <revision>",
    "only up to this one, by its number or name",
  );
  below("status", "what has been applied; exit code 1 when something is missing", status);
  below("print", "everything as one SQL script, without touching a database", async ({ io, json, config }, options) => {
    const sql = printMigrations(config.schema, setOf(options));
    if (json) printJson(io, JSON.stringify({ sql }));
    else io.out(sql.endsWith("\n") ? sql : `${sql}\n`);
    return EXIT.ok;
  });
}

async function up(context: CommandContext, options: Options): Promise<ExitCode> {
  const { io, json, config } = context;
  const done = await withConnection(context, (connection) => migrateUp(connection, config.schema, setOf(options), options.to));
  if (json) printJson(io, JSON.stringify({ applied: done }));
  else if (done.length === 0) say(io, `nothing to do: the schema is up to ${options.to ?? "date"}`);
  else say(io, ...done.map((name) => `applied ${name}`));
  return EXIT.ok;
}

const stateList = listing<{ version: number; name: string; applied: boolean; applied_at: string | null }>({
  version: ({ version }) => String(version).padStart(4, "0"),
  name: "name",
  applied: "applied",
  at: "applied_at",
});

async function status(context: CommandContext, options: Options): Promise<ExitCode> {
  const { io, json, config, init } = context;
  if (!init) await refuseNowhere(config);
  const states = await withConnection(context, (connection) => migrationStatus(connection, config.schema, setOf(options)));
  const data = states.map(({ appliedAt, ...state }) => ({ ...state, applied_at: appliedAt }));
  const whole = data.every(({ applied }) => applied);
  if (json) printJson(io, JSON.stringify({ data, next_cursor: null }));
  else {
    stateList(io, { data });
    if (!whole) say(io, "", "`makegood migrate up` applies what is missing");
  }
  return whole ? EXIT.ok : EXIT.failed;
}

/** A connection of its own, to the server of DATABASE_URL or to the embedded one. */
async function withConnection<T>({ io, config }: CommandContext, use: (connection: Connection) => Promise<T>): Promise<T> {
  const { url, release } = await storeUrl({ config, log: warnings(io) });
  const connection = createConnection({ url, poolMax: 2 });
  try {
    await connection.open();
    return await use(connection);
  } finally {
    await connection.close();
    await release();
  }
}
