/**
 * One conversation with the API: over HTTP where MAKEGOOD_URL says so, else the same handlers on the store itself, opened for the duration
 * of the command. Either way the client is that of the contract. A refusal ends the command, in words and in the exit code.
 */
import type { RouteId } from "../contract/addresses.ts";
import { ApiError, type Client, createClient } from "../contract/http-client.ts";
import type { AnswerOf, InputOf } from "../contract/table.ts";
import { errorText, isMakegoodError } from "../message/errors.ts";
import type { Config } from "../server/config/config.ts";
import { EXIT, type ExitCode, exitCodeOf, Stop } from "./exit-code.ts";
import { complain, printJson } from "./io.ts";
import type { CommandContext, Run } from "./run.ts";

/** What the command may do to a store that it opens: only look; change what is there; or also set up what is missing. */
export type Access = "look" | "check" | "up";

export interface Conversation extends CommandContext {
  readonly client: Client;
}

/** As long as one answer may take: the list of a redrive over many messages is frozen before it answers. */
const TIMEOUT_MS = 300_000;

export function conversation(run: Run, access: Access, use: (asking: Conversation) => Promise<ExitCode>): Promise<void> {
  const talk = async (context: CommandContext): Promise<ExitCode> => {
    let opened: Awaited<ReturnType<typeof openClient>> | undefined;
    try {
      opened = await openClient(context, context.init ? "up" : access);
      return await use({ ...context, client: opened.client });
    } catch (error) {
      return report(context, error);
    } finally {
      await opened?.close().catch((error) => complain(context.io, `makegood: could not close cleanly: ${errorText(error)}`));
    }
  };
  return run(talk, { asksServer: true });
}

async function openClient({ io, config }: CommandContext, access: Access) {
  const { url, token } = config;
  // A person waits: what fails is said at once, and repeated by hand.
  const how = { triesMax: 1, timeoutMs: TIMEOUT_MS };
  if (url !== null) return { client: createClient({ url, token: token ?? undefined, ...how }), close: async () => {} };
  // Loaded only here: a command that asks a server needs no store's client.
  const { openLocal } = await import("./local.ts");
  const { fetch, close } = await openLocal(io, config, access);
  return { client: createClient({ url: "http://localhost", fetch, ...how }), close };
}

export interface Answered<T> {
  readonly value: T;
  /** As it came: a payload in it has its exact bytes. */
  readonly text: string;
}

/** `body`: JSON text that is sent as it is. */
export async function ask<Id extends RouteId>(
  { client }: Conversation,
  id: Id,
  input: InputOf<Id>,
  body?: string,
): Promise<Answered<AnswerOf<Id>>> {
  const { status, text } = await client.raw(id, input, { body });
  if (status >= 400) throw new ApiError(status, parsed(text) ?? { detail: text.slice(0, 500) });
  return { value: (parsed(text) ?? text) as AnswerOf<Id>, text };
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** Asks once and shows the answer: for people in words, with --json as it came. */
export async function askAndShow<Id extends RouteId>(
  asking: Conversation,
  id: Id,
  input: InputOf<Id>,
  show: (value: AnswerOf<Id>, text: string) => void,
  body?: string,
): Promise<ExitCode> {
  const { value, text } = await ask(asking, id, input, body);
  if (asking.json) printJson(asking.io, text === "" ? "{}" : text);
  else show(value, text);
  return EXIT.ok;
}

/** Says what went wrong and what to do about it. */
export function report({ io, json, config }: CommandContext, error: unknown): ExitCode {
  if (error instanceof ApiError && json) {
    io.err(`${JSON.stringify(error.problem)}\n`);
    return exitCodeOf(error.status, error.code);
  }
  const [first, ...more] = error instanceof ApiError ? refusalWords(error) : [failureText(error, config)];
  complain(io, `makegood: ${first}`, ...more.map((line) => `  ${line}`));
  if (error instanceof ApiError) return exitCodeOf(error.status, error.code);
  return error instanceof Stop ? error.exit : EXIT.failed;
}

/** Of one fault the field and what is wrong with it; of several a line each. */
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
  if (config.url !== null && !isMakegoodError(error) && !(error instanceof Stop)) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return `cannot reach ${config.url}: ${errorText(cause)}: is \`makegood serve\` running there? MAKEGOOD_URL says where to ask`;
  }
  if (!isMakegoodError(error) || error.code !== "store_unavailable") return errorText(error);
  const where = config.store === "redis" ? "REDIS_URL" : config.database_url === null ? "MAKEGOOD_DATA_DIR" : "DATABASE_URL";
  return `${error.message}: nothing was done; see that the server of ${where} runs, and ask again (\`makegood doctor\` looks)`;
}
