/**
 * One question to the API from a command: the answer, or the exit code of a refusal that has been printed already. What a command
 * prints is its words for people, and the answer itself with --json.
 */

import { refusedAnswer, withApi } from "./api.ts";
import type { Api } from "./api-on.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { printJson } from "./io.ts";
import type { CommandContext, Run } from "./run.ts";

export type Asked<T> =
  | { readonly ok: true; readonly value: T; readonly text: string }
  | { readonly ok: false; readonly exit: ExitCode };

export async function ask<T>(
  { io, json }: CommandContext,
  api: Api,
  method: string,
  path: string,
  body?: unknown,
): Promise<Asked<T>> {
  const answer = await api.call(method, path, body === undefined ? undefined : JSON.stringify(body));
  const refused = refusedAnswer(io, answer, json);
  if (refused !== null) return { ok: false, exit: refused };
  return { ok: true, value: (answer.text === "" ? {} : JSON.parse(answer.text)) as T, text: answer.text };
}

/** Asks once and shows the answer. */
export async function askAndShow<T>(
  context: CommandContext,
  api: Api,
  [method, path, body]: readonly [method: string, path: string, body?: unknown],
  show: (value: T) => void,
): Promise<ExitCode> {
  const asked = await ask<T>(context, api, method, path, body);
  if (!asked.ok) return asked.exit;
  if (context.json) printJson(context.io, asked.text === "" ? "{}" : asked.text);
  else show(asked.value);
  return EXIT.ok;
}

/** A command that is one conversation with the API. */
export function conversation(run: Run, use: (context: CommandContext, api: Api) => Promise<ExitCode>): Promise<void> {
  return run((context) => withApi(context.io, context.config, (api) => use(context, api)));
}

/** `?a=1&b=2` of what is given, in the API's names. */
export function queryOf(given: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, String(value));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** An id as one part of a path; it cannot leave that part. */
export function part(id: string): string {
  return encodeURIComponent(id);
}
