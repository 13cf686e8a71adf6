/**
 * The command line as a function of its arguments: reads the configuration once, runs one command and returns its exit code (0 done, 1
 * failed, 2 wrong arguments or configuration, 3 not found, 4 conflict). What it prints goes where it is told.
 */
import { Command, CommanderError } from "commander";
import { errorText } from "../message/errors.ts";
import { readConfig } from "../server/config.ts";
import { VERSION } from "../server/version.ts";
import { approveCommand, candidatesCommand, executeCommand, rejectCommand } from "./commands/candidates.ts";
import { checkRedisCommand } from "./commands/check-redis.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { enqueueCommand } from "./commands/enqueue.ts";
import { evaluateCommand } from "./commands/evaluate.ts";
import { groupsCommand, suggestCommand } from "./commands/groups.ts";
import { importCommand } from "./commands/import.ts";
import { journalCommand } from "./commands/journal.ts";
import { messagesCommand } from "./commands/messages.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { redriveCommand } from "./commands/redrive.ts";
import { actionsCommand, rulesCommand } from "./commands/rules.ts";
import { serveCommand } from "./commands/serve.ts";
import { storeCommand } from "./commands/store.ts";
import { topicsCommand } from "./commands/topics.ts";
import { workCommand } from "./commands/work.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { complain, type Io } from "./io.ts";
import type { Run } from "./run.ts";

const AFTER_HELP = `
Exit codes: 0 done, 1 failed, 2 wrong arguments or configuration, 3 not found, 4 conflict.
With MAKEGOOD_URL (and MAKEGOOD_TOKEN) commands ask that server; without it they open the store themselves.`;

export async function runProgram(io: Io, args: readonly string[]): Promise<ExitCode> {
  let exit: ExitCode = EXIT.ok;
  const program = new Command("makegood")
    .description("Keeps the promises that services make to other systems.")
    .version(VERSION)
    .option("--json", "print JSON, for a program to read")
    .option("--config <path>", "the config file, instead of makegood.config.(mjs|json|ts) in this directory")
    .addHelpText("after", AFTER_HELP)
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text) })
    .showHelpAfterError("(--help says what there is)")
    .exitOverride();
  const run: Run = async (work, flags = {}) => {
    const { json = false, config: path } = program.opts<{ json?: boolean; config?: string }>();
    const read = await readConfig({ env: io.env, cwd: io.cwd, flags: { ...flags, config: path } });
    if (read.ok) {
      exit = await work({ io, config: read.config, json });
      return;
    }
    complain(io, `makegood: the configuration has ${read.faults.length === 1 ? "a mistake" : `${read.faults.length} mistakes`}:`);
    complain(io, ...read.faults.map((fault) => `  - ${fault}`));
    exit = EXIT.usage;
  };
  const commands = [
    serveCommand,
    workCommand,
    enqueueCommand,
    messagesCommand,
    topicsCommand,
    storeCommand,
    groupsCommand,
    suggestCommand,
    candidatesCommand,
    approveCommand,
    rejectCommand,
    executeCommand,
    redriveCommand,
    evaluateCommand,
    rulesCommand,
    actionsCommand,
    journalCommand,
    importCommand,
    migrateCommand,
    doctorCommand,
    checkRedisCommand,
  ];
  for (const add of commands) add(program, run);
  try {
    await program.parseAsync(args, { from: "user" });
    return exit;
  } catch (error) {
    // Commander has said what is wrong by now; help and version are not mistakes.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    complain(io, `makegood: ${errorText(error)}`);
    return EXIT.failed;
  }
}
