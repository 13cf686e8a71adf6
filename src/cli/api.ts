/**
 * The API as the commands call it: over HTTP where MAKEGOOD_URL says so, else the same handlers on the store itself, opened
 * for the duration of the command. Either way the answers are those of the contract.
 */
import { userInfo } from "node:os";
import { createMakegood } from "../create.ts";
import { errorText, isMakegoodError } from "../message/errors.ts";
import { createLog } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import { createApp } from "../server/app.ts";
import type { Config } from "../server/config.ts";
import { openStore } from "../server/open-store.ts";
import { kernelOf, makegoodOptions } from "../server/serve.ts";
import { EXIT, type ExitCode, exitCodeOf } from "./exit-code.ts";
import { complain, type Io } from "./io.ts";

export interface ApiAnswer {
  readonly status: number;
  readonly text: string;
}

export interface Api {
  /** `body` is JSON text. */
  call(method: string, path: string, body?: string): Promise<ApiAnswer>;
  close(): Promise<void>;
}

type Fetch = (request: Request) => Response | Promise<Response>;

export async function openApi(io: Io, config: Config): Promise<Api> {
  return config.url === null ? localApi(io, config) : remoteApi(config.url, config.token);
}

function apiOn(base: string, headers: Record<string, string>, send: Fetch, close: () => Promise<void>): Api {
  return {
    async call(method, path, body) {
      const init: RequestInit = { method, redirect: "error", headers: { ...headers, "content-type": "application/json" } };
      if (body !== undefined) init.body = body;
      const response = await send(new Request(base + path, init));
      return { status: response.status, text: await response.text() };
    },
    close,
  };
}

function remoteApi(url: string, token: string | null): Api {
  const base = url.replace(/\/$/, "");
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  return apiOn(base, headers, fetch, async () => {});
}

async function localApi(io: Io, config: Config): Promise<Api> {
  const clock = systemClock;
  const log = createLog({ clock, format: "text", level: "warn", write: (line) => io.err(line) });
  const opened = await openStore({ config, log });
  try {
    const mg = await createMakegood(makegoodOptions(config, opened.store, log, clock));
    // Whoever can open the store may clear away what a config file once declared and no longer does.
    const abandoned = (topic: string): boolean => !config.topics.some(({ definition }) => definition.name === topic);
    const kernel = kernelOf({ config, mg, log, clock, worker: null, draining: () => false, abandoned });
    const app = createApp({ kernel, tokens: [], anonymous: actor(), hosts: null });
    return apiOn("http://localhost", {}, app.fetch, async () => {
      await mg.close();
      await opened.release();
    });
  } catch (error) {
    await opened.release();
    throw error;
  }
}

/** Under whose name the history will show what was done here. */
function actor(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    return "cli";
  }
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
