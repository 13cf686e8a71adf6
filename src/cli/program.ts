/** The command line as a function of its arguments: reads the configuration, runs one command and returns its exit code. */
import { Command, CommanderError } from "commander";
import { errorText } from "../message/errors.ts";
import { readConfig } from "../server/config/config.ts";
import { VERSION } from "../server/version.ts";
import { type AddCommand, type Run, report } from "./conversation.ts";
import { complain, EXIT, type ExitCode, type Io } from "./io.ts";

type Load = () => Promise<{ readonly commands: AddCommand | readonly AddCommand[] }>;

/** In the order of the help. Each is loaded when it is named: most need neither the server nor a store's client. */
const COMMANDS: Readonly<Record<string, Load>> = {
  "serve work": () => import("./commands/serve.ts"),
  "enqueue messages store topics": () => import("./commands/messages.ts"),
  "groups suggest": () => import("./commands/groups.ts"),
  "candidates approve reject execute": () => import("./commands/candidates.ts"),
  redrive: () => import("./commands/redrive.ts"),
  "audit evidence": () => import("./commands/audit.ts"),
  "evaluate rules causes actions whatif recovery": () => import("./commands/rules.ts"),
  "jobs archive": () => import("./commands/jobs.ts"),
  journal: () => import("./commands/journal.ts"),
  "export import": () => import("./commands/transfer.ts"),
  streams: () => import("./commands/streams.ts"),
  "backup restore": () => import("./commands/backup.ts"),
  "check-redis": () => import("./commands/redis.ts"),
  migrate: () => import("./commands/migrate.ts"),
  verify: () => import("./commands/verify.ts"),
  doctor: () => import("./commands/doctor.ts"),
  completion: () => import("./commands/completion.ts"),
};

function loaders(args: readonly string[]): Load[] {
  const first = args.find((arg, i) => !arg.startsWith("-") && args[i - 1] !== "--config") ?? "";
  const [, named] = Object.entries(COMMANDS).find(([names]) => names.split(" ").includes(first)) ?? [];
  const before = args.slice(0, Math.max(0, args.indexOf(first)));
  const whole = first === "completion" || before.some((arg) => arg === "-h" || arg === "--help");
  return named && !whole ? [named] : Object.values(COMMANDS);
}

const AFTER_HELP = `
Exit codes: 0 done, 1 failed, 2 wrong arguments or configuration, 3 not found, 4 conflict, 5 not proven.
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
      const context = { io, config: read.config, json, init };
      exit = await work(context).catch((error: unknown) => report(context, error));
      return;
    }
    complain(io, `makegood: the configuration has ${read.faults.length === 1 ? "a mistake" : `${read.faults.length} mistakes`}:`);
    complain(io, ...read.faults.map((fault) => `  - ${fault}`));
    exit = EXIT.usage;
  };
  for (const load of loaders(args)) for (const add of [(await load()).commands].flat()) add(program, run);
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
