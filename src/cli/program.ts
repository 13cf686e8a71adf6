/**
 * The command line as a function of its arguments: reads the configuration once, runs one command and returns its exit code (0
 * done, 1 failed, 2 wrong arguments or configuration, 3 not found, 4 conflict). What it prints goes to the given `io`.
 */
import { Command, CommanderError } from "commander";
import { errorText } from "../message/errors.ts";
import { readConfig } from "../server/config/config.ts";
import { VERSION } from "../server/version.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { complain, type Io } from "./io.ts";
import type { Run } from "./run.ts";

type AddCommand = (program: Command, run: Run) => void;

/** In the order of the help. Each is loaded when it is named: most need neither the server nor a store's client. */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  serve: async () => (await import("./commands/serve.ts")).serveCommand,
  work: async () => (await import("./commands/serve.ts")).workCommand,
  enqueue: async () => (await import("./commands/messages.ts")).enqueueCommand,
  messages: async () => (await import("./commands/messages.ts")).messagesCommand,
  topics: async () => (await import("./commands/topics.ts")).topicsCommand,
  store: async () => (await import("./commands/messages.ts")).storeCommand,
  groups: async () => (await import("./commands/groups.ts")).groupsCommand,
  suggest: async () => (await import("./commands/groups.ts")).suggestCommand,
  candidates: async () => (await import("./commands/candidates.ts")).candidatesCommand,
  approve: async () => (await import("./commands/candidates.ts")).approveCommand,
  reject: async () => (await import("./commands/candidates.ts")).rejectCommand,
  execute: async () => (await import("./commands/candidates.ts")).executeCommand,
  redrive: async () => (await import("./commands/redrive.ts")).redriveCommand,
  evaluate: async () => (await import("./commands/rules.ts")).evaluateCommand,
  rules: async () => (await import("./commands/rules.ts")).rulesCommand,
  actions: async () => (await import("./commands/rules.ts")).actionsCommand,
  journal: async () => (await import("./commands/journal.ts")).journalCommand,
  import: async () => (await import("./commands/redis.ts")).importCommand,
  migrate: async () => (await import("./commands/migrate.ts")).migrateCommand,
  doctor: async () => (await import("./commands/doctor.ts")).doctorCommand,
  "check-redis": async () => (await import("./commands/redis.ts")).checkRedisCommand,
  completion: async () => (await import("./commands/completion.ts")).completionCommand,
};

/** That of the command that is named first, or all: for the help, and to say what there is instead of a wrong one. */
function loaders(args: readonly string[]): (() => Promise<AddCommand>)[] {
  const first = args.find((arg, i) => !arg.startsWith("-") && args[i - 1] !== "--config");
  const named = first !== undefined && Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : undefined;
  const before = first === undefined ? [] : args.slice(0, args.indexOf(first));
  const whole = first === "completion" || before.some((arg) => arg === "-h" || arg === "--help");
  return named && !whole ? [named] : Object.values(COMMANDS);
}

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
    .option("--init", "set up what is missing of the store; without it only serve, work, migrate, enqueue and `set` do")
    .configureHelp({ showGlobalOptions: true })
    .addHelpText("after", AFTER_HELP)
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text) })
    .showHelpAfterError("(--help says what there is)")
    .exitOverride();
  const run: Run = async (work, { flags = {}, asksServer } = {}) => {
    const { json = false, init = false, config: path } = program.opts<{ json?: boolean; init?: boolean; config?: string }>();
    const read = await readConfig({ env: io.env, cwd: io.cwd, flags: { ...flags, config: path }, asksServer });
    if (read.ok) {
      exit = await work({ io, config: read.config, json, init });
      return;
    }
    complain(io, `makegood: the configuration has ${read.faults.length === 1 ? "a mistake" : `${read.faults.length} mistakes`}:`);
    complain(io, ...read.faults.map((fault) => `  - ${fault}`));
    exit = EXIT.usage;
  };
  for (const load of loaders(args)) (await load())(program, run);
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
