/**
 * `makegood migrate up|status|print`: the database schema, applied, looked at, or printed for a database administrator to apply.
 */
import { type Command, Option } from "commander";
import { storeUrl } from "../../server/open-store.ts";
import {
  type Connection,
  createConnection,
  KERNEL_SET,
  type MigrationSet,
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
import { table } from "../table.ts";

interface Options {
  readonly set?: string;
  readonly to?: string;
}

const setOf = ({ set }: Options): MigrationSet => OPTIONAL_SETS.get(set ?? "") ?? KERNEL_SET;

export function migrateCommand(program: Command, run: Run): void {
  const migrate = program
    .command("migrate")
    .description("the database schema; always on the database itself, never over MAKEGOOD_URL");
  const below = (name: string, description: string): Command =>
    migrate
      .command(name)
      .description(description)
      .addOption(
        new Option("--set <name>", "tables that only a preset needs, on top of the kernel's").choices([...OPTIONAL_SETS.keys()]),
      );
  below("up", "apply what is missing; safe when several do it at once")
    .option("--to <revision>", "only up to this one, by its number or name")
    .action((options: Options) =>
      run((context) => withConnection(context, true, (connection) => up(context, connection, options))),
    );
  below("status", "what has been applied; exit code 1 when something is missing").action((options: Options) =>
    run((context) => withConnection(context, context.init, (connection) => status(context, connection, options))),
  );
  below("print", "everything as one SQL script, without touching a database").action((options: Options) =>
    run(async ({ io, json, config }) => {
      const sql = printMigrations(config.schema, setOf(options));
      if (json) printJson(io, JSON.stringify({ sql }));
      else io.out(sql.endsWith("\n") ? sql : `${sql}\n`);
      return EXIT.ok;
    }),
  );
}

async function up({ io, json, config }: CommandContext, connection: Connection, options: Options): Promise<ExitCode> {
  const done = await migrateUp(connection, config.schema, setOf(options), options.to);
  if (json) printJson(io, JSON.stringify({ applied: done }));
  else if (done.length === 0) say(io, `nothing to do: the schema is up to ${options.to ?? "date"}`);
  else say(io, ...done.map((name) => `applied ${name}`));
  return EXIT.ok;
}

async function status({ io, json, config }: CommandContext, connection: Connection, options: Options): Promise<ExitCode> {
  const states = await migrationStatus(connection, config.schema, setOf(options));
  const data = states.map(({ appliedAt, ...state }) => ({ ...state, applied_at: appliedAt }));
  if (json) printJson(io, JSON.stringify({ data, next_cursor: null }));
  else {
    const rows = data.map(({ version, name, applied, applied_at }) => {
      return [String(version).padStart(4, "0"), name, applied ? "yes" : "no", applied_at ?? ""];
    });
    table(io, ["version", "name", "applied", "at"], rows);
    if (!data.every(({ applied }) => applied)) say(io, "", "`makegood migrate up` applies what is missing");
  }
  return data.every(({ applied }) => applied) ? EXIT.ok : EXIT.failed;
}

/** A connection of its own, to the server of DATABASE_URL or to the embedded one. */
async function withConnection(
  context: CommandContext,
  makes: boolean,
  use: (connection: Connection) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { io, config } = context;
  const undo: (() => Promise<void>)[] = [];
  try {
    if (!makes) await refuseNowhere(config);
    const found = await storeUrl({ config, log: warnings(io) });
    undo.push(found.release);
    const connection = createConnection({ url: found.url, poolMax: 2 });
    undo.push(() => connection.close());
    await connection.open();
    return await use(connection);
  } catch (error) {
    return report(context, error);
  } finally {
    for (const step of undo.reverse()) await step().catch((error: unknown) => report(context, error));
  }
}
