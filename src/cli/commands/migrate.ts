/**
 * `makegood migrate up|status|print`: the database schema, applied, looked at, or printed for a database administrator to apply.
 */
import type { Command } from "commander";
import { errorText, MakegoodError } from "../../message/errors.ts";
import { createLog } from "../../observe/log.ts";
import { systemClock } from "../../platform/clock.ts";
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
import { EXIT, type ExitCode } from "../exit-code.ts";
import { complain, printJson, say, table } from "../io.ts";
import type { CommandContext, Run } from "../run.ts";

interface SetOption {
  readonly set?: string;
}

const SET_HELP = `tables that only a preset needs, on top of the kernel's: ${[...OPTIONAL_SETS.keys()].join(", ")}`;

function setOf(name: string | undefined): MigrationSet {
  if (name === undefined) return KERNEL_SET;
  const set = OPTIONAL_SETS.get(name);
  if (set) return set;
  throw new MakegoodError(
    "invalid_config",
    `there is no set ${JSON.stringify(name)}: choose ${[...OPTIONAL_SETS.keys()].join(", ")}`,
  );
}

export function migrateCommand(program: Command, run: Run): void {
  const migrate = program
    .command("migrate")
    .description("the database schema; always on the database itself, never over MAKEGOOD_URL");
  migrate
    .command("up")
    .description("apply what is missing; safe when several do it at once")
    .option("--set <name>", SET_HELP)
    .option("--to <revision>", "only up to this one, by its number or name")
    .action(({ set, to }: SetOption & { readonly to?: string }) =>
      run((context) =>
        withConnection(context, async (connection) => {
          const { io, json, config } = context;
          const done = await migrateUp(connection, config.schema, setOf(set), to);
          if (json) printJson(io, JSON.stringify({ applied: done }));
          else
            say(
              io,
              ...(done.length === 0
                ? [`nothing to do: the schema is up to ${to ?? "date"}`]
                : done.map((name) => `applied ${name}`)),
            );
          return EXIT.ok;
        }),
      ),
    );
  migrate
    .command("status")
    .description("what has been applied; exit code 1 when something is missing")
    .option("--set <name>", SET_HELP)
    .action(({ set }: SetOption) =>
      run((context) =>
        withConnection(context, async (connection) => {
          const { io, json, config } = context;
          const states = await migrationStatus(connection, config.schema, setOf(set));
          const data = states.map(({ version, name, applied, appliedAt }) => ({ version, name, applied, applied_at: appliedAt }));
          if (json) printJson(io, JSON.stringify({ data, next_cursor: null }));
          else {
            const rows = data.map((one) => [
              String(one.version).padStart(4, "0"),
              one.name,
              one.applied ? "yes" : "no",
              one.applied_at ?? "",
            ]);
            table(io, ["version", "name", "applied", "at"], rows);
          }
          return data.every(({ applied }) => applied) ? EXIT.ok : EXIT.failed;
        }),
      ),
    );
  migrate
    .command("print")
    .description("everything as one SQL script, without touching a database")
    .option("--set <name>", SET_HELP)
    .action(({ set }: SetOption) =>
      run(async ({ io, json, config }) => {
        const sql = printMigrations(config.schema, setOf(set));
        if (json) printJson(io, JSON.stringify({ sql }));
        else io.out(sql.endsWith("\n") ? sql : `${sql}\n`);
        return EXIT.ok;
      }),
    );
}

/** A connection of its own, to the server of DATABASE_URL or to the embedded one. */
async function withConnection(
  { io, config }: CommandContext,
  use: (connection: Connection, url: { url: string; embedded: boolean }) => Promise<ExitCode>,
): Promise<ExitCode> {
  const log = createLog({ clock: systemClock, format: "text", level: "warn", write: (line) => io.err(line) });
  const undo: (() => Promise<void>)[] = [];
  try {
    const found = await storeUrl({ config, log });
    undo.push(found.release);
    const connection = createConnection({ url: found.url, poolMax: 2 });
    undo.push(() => connection.close());
    await connection.open();
    return await use(connection, found);
  } catch (error) {
    complain(io, `makegood: ${errorText(error)}`);
    return EXIT.failed;
  } finally {
    for (const step of undo.reverse()) await step().catch((error) => complain(io, `makegood: ${errorText(error)}`));
  }
}
