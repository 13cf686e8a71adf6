/**
 * The API as the commands call it: over HTTP where MAKEGOOD_URL says so, else the same handlers on the store itself, opened
 * for the duration of the command. Either way the answers are those of the contract.
 */
import { errorText, isMakegoodError } from "../message/errors.ts";
import type { Config } from "../server/config/config.ts";
import { type Api, type ApiAnswer, apiOn } from "./api-on.ts";
import { EXIT, type ExitCode, exitCodeOf } from "./exit-code.ts";
import { complain, type Io } from "./io.ts";

export async function openApi(io: Io, config: Config): Promise<Api> {
  if (config.url !== null) return remoteApi(config.url, config.token);
  // Loaded only here: a command that asks a server needs no store's client.
  const { localApi } = await import("./local-api.ts");
  return localApi(io, config);
}

function remoteApi(url: string, token: string | null): Api {
  const base = url.replace(/\/$/, "");
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  return apiOn(base, headers, fetch, async () => {});
}

/** Runs one conversation and says what went wrong, in words and in the exit code. */
export async function withApi(io: Io, config: Config, use: (api: Api) => Promise<ExitCode>): Promise<ExitCode> {
  let api: Api | undefined;
  try {
    api = await openApi(io, config);
    return await use(api);
  } catch (error) {
    complain(io, `makegood: ${unreachable(error, config)}`);
    return EXIT.failed;
  } finally {
    await api?.close().catch((error) => complain(io, `makegood: could not close cleanly: ${errorText(error)}`));
  }
}

function unreachable(error: unknown, config: Config): string {
  if (isMakegoodError(error) || config.url === null) return errorText(error);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return `cannot reach ${config.url}: ${errorText(cause)}`;
}

/** True when the answer was good; otherwise it has been reported and `exit` says how. */
export function refusedAnswer(io: Io, answer: ApiAnswer, asJson: boolean): ExitCode | null {
  if (answer.status < 400) return null;
  const problem = problemIn(answer.text);
  if (asJson) io.err(`${answer.text}\n`);
  else {
    complain(io, `makegood: ${problem.detail} (${problem.code})`);
    for (const error of problem.errors) {
      complain(io, `  ${[error.field, error.index, error.code].find((one) => one !== undefined)}: ${error.detail}`);
    }
  }
  return exitCodeOf(answer.status, problem.code);
}

interface ShownProblem {
  readonly code: string;
  readonly detail: string;
  readonly errors: readonly { field?: string; index?: number; code: string; detail: string }[];
}

function problemIn(text: string): ShownProblem {
  try {
    const { code, detail, errors } = JSON.parse(text) as Partial<ShownProblem>;
    return { code: String(code), detail: String(detail), errors: Array.isArray(errors) ? errors : [] };
  } catch {
    return { code: "no_problem_json", detail: text.slice(0, 500), errors: [] };
  }
}
