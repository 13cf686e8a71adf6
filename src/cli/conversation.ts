/** What every command gets, and its conversation with the API: over HTTP with MAKEGOOD_URL, else on the store itself. */
import type { Command } from "commander";
import type { RouteId } from "../contract/addresses.ts";
import { ApiError, answeredBy, type Client, createClient } from "../contract/http-client.ts";
import type { AnswerOf, InputOf } from "../contract/table.ts";
import { unreachable } from "../doctor/server.ts";
import { errorText, isMakegoodError } from "../message/errors.ts";
import type { Config } from "../server/config/config.ts";
import type { SettingName } from "../server/config/settings.ts";
import { complain, EXIT, type ExitCode, exitCodeOf, type Io, Stop } from "./io.ts";

export interface CommandContext {
  readonly io: Io;
  readonly config: Config;
  readonly json: boolean;
  /** --init: what is missing of the store is made. */
  readonly init: boolean;
}

/** `flags`: what the command line said, by setting. `asksServer`: with MAKEGOOD_URL a config file of this folder is not executed. */
export type Run = (
  work: (context: CommandContext) => Promise<ExitCode>,
  reading?: { flags?: Readonly<Partial<Record<SettingName, string>>>; asksServer?: boolean },
) => Promise<void>;
export type AddCommand = (parent: Command, run: Run) => void;
export type Options = Readonly<Record<string, unknown>>;

export const family =
  (name: string, about: string, below: readonly AddCommand[]): AddCommand =>
  (program, run) => {
    const parent = program.command(name).description(about);
    for (const add of below) add(parent, run);
  };

/** What the command may do to a store that it opens: only look; change what is there; or also set up what is missing. */
export type Access = "look" | "check" | "up";

export type Conversation = CommandContext & { readonly client: Client };

/** As long as one answer may take: the list of a redrive over many messages is frozen before it answers. */
const TIMEOUT_MS = 300_000;

export function conversation(run: Run, access: Access, use: (asking: Conversation) => Promise<ExitCode>): Promise<void> {
  const talk = async (context: CommandContext): Promise<ExitCode> => {
    const { io, config, init } = context;
    // Loaded only here: a command that asks a server needs no store's client.
    const local = config.url === null ? await (await import("./local.ts")).openLocal(io, config, init ? "up" : access) : null;
    const where = local
      ? { url: "http://localhost", fetch: local.fetch }
      : { url: config.url ?? "", token: config.token ?? undefined };
    try {
      // A person waits: what fails is said at once, and repeated by hand.
      return await use({ ...context, client: createClient({ ...where, triesMax: 1, timeoutMs: TIMEOUT_MS }) });
    } finally {
      await local?.close().catch((error) => complain(io, `makegood: could not close cleanly: ${errorText(error)}`));
    }
  };
  return run(talk, { asksServer: true });
}

/** The answer, and its text as it came: a payload in it has its exact bytes. `body`: JSON text that is sent as it is. */
export async function ask<Id extends RouteId>({ client }: Conversation, id: Id, input: InputOf<Id>, body?: string) {
  const answer = await client.raw(id, input, { body });
  return { value: answeredBy(answer) as AnswerOf<Id>, text: answer.text };
}

export const YES = { "--yes": "do not ask" };
export const WAIT = { ...YES, "--wait": "follow it to its end; exit code 1 if anything failed" };
export const NO_TERMINAL = "no terminal to ask at, and nothing was done: add --yes";

export async function confirmed(io: Io, question: string): Promise<void> {
  const typed = await io.ask(`${question} [y/N] `);
  if (typed === null) throw new Stop(NO_TERMINAL);
  if (!/^y(es)?$/i.test(typed)) throw new Stop("nothing was done");
}

export function report({ io, json, config }: CommandContext, error: unknown): ExitCode {
  const isRefusal = error instanceof ApiError;
  const [first, ...more] = isRefusal ? refusalWords(error) : [failureText(error, config)];
  if (isRefusal && json) io.err(`${JSON.stringify(error.problem)}\n`);
  else complain(io, `makegood: ${first}`, ...more.map((line) => `  ${line}`));
  if (isRefusal) return exitCodeOf(error.status, error.code);
  return error instanceof Stop ? error.exit : EXIT.failed;
}

function refusalWords({ errors, code, message, problem }: ApiError): string[] {
  const words = errors.map(({ field, index, detail, code: own }) => {
    const where = field ?? index ?? own;
    return where === undefined || where === "." ? detail : `${where} ${detail}`;
  });
  if (words.length === 0) return [`${message} (${code})`];
  const more = Number(problem.errors_more ?? 0);
  if (words.length === 1 && more === 0) return [`${words[0]} (${code})`];
  return [`${words.length + more} things are wrong (${code}):`, ...words, ...(more > 0 ? [`and ${more} more`] : [])];
}

function failureText(error: unknown, config: Config): string {
  if (config.url !== null && !isMakegoodError(error) && !(error instanceof Stop))
    return `${unreachable(config.url, error)} MAKEGOOD_URL says where to ask`;
  if (!isMakegoodError(error) || error.code !== "store_unavailable") return errorText(error);
  const where = config.store === "redis" ? "REDIS_URL" : config.database_url === null ? "MAKEGOOD_DATA_DIR" : "DATABASE_URL";
  return `${error.message}: nothing was done; see that the server of ${where} runs, and ask again (\`makegood doctor\` looks)`;
}
