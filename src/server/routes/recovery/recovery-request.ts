/**
 * What every recovery handler needs of a request: the engine (or 501), who asks and as what, an id in the path, and the answer to a
 * version that has moved on.
 */
import { isMakegoodError } from "../../../message/errors.ts";
import type { Actor, Recovery } from "../../../recovery/recovery.ts";
import { recoveryOf } from "../../../store/recovery.ts";
import { problem, problemOf, type Reply } from "../../contract/problem.ts";
import type { ApiRequest, Handler } from "../../http.ts";
import type { Kernel } from "../../kernel.ts";

export type RecoveryHandler = (recovery: Recovery, request: ApiRequest, actor: Actor) => Promise<Reply>;

/** Answers 501 where there is no engine, 400 for an actor type that nobody may claim. */
export function recoveryHandler(kernel: Kernel, handle: RecoveryHandler): Handler {
  return async (request) => {
    const { recovery } = kernel;
    if (recovery === null) return unavailable(kernel);
    const type = request.header("x-actor-type") ?? "human";
    if (type !== "human" && type !== "agent") {
      return problem("invalid_request", "the header x-actor-type must be human or agent; absent: human");
    }
    try {
      return await handle(recovery, request, { actor: request.actor, actorType: type });
    } catch (error) {
      const reply = answerTo(error, request);
      if (reply === undefined) throw error;
      return reply;
    }
  };
}

function unavailable({ mg }: Kernel): Reply {
  const detail =
    recoveryOf(mg.store) === null
      ? `recovery records need PostgreSQL, and this server's store is ${mg.store.traits.name}`
      : "recovery is switched off on this server (MAKEGOOD_RECOVERY=off)";
  return problem("needs_postgres", detail);
}

/** A few of the engine's refusals know something of HTTP; the others are answered as everywhere. */
function answerTo(error: unknown, request: ApiRequest): Reply | undefined {
  const reply = problemOf(error);
  if (!isMakegoodError(error) || reply === undefined) return undefined;
  // RFC 9110: a condition of the caller's that does not hold is 412; a member `version` is ours, and that is 409.
  if (error.code === "version_conflict" && request.header("if-match") !== null) return restated(reply, { status: 412 });
  if (error.code === "invalid_request") return inOutsideNames(reply);
  if (error.code === "nothing_selected") return restated(reply, { detail: inSnakeCase(error.message) });
  if (error.code === "approval_needed" && error.detail.needed === 2 && !request.named)
    return restated(reply, { detail: `${error.message}; ${NAMES_HINT}` });
  return undefined;
}

/** What the engine calls a member, and what it is called over HTTP where that is more than its snake_case. */
const OUTSIDE: Readonly<Record<string, string>> = { requestKey: "idempotency_key", "select.code": "select.error_code" };

const outsideName = (field: string): string => OUTSIDE[field] ?? field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Texts of the engine name members too, such as generationMax. */
const inSnakeCase = (text: string): string => text.replace(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, outsideName);

function inOutsideNames(reply: Reply): Reply {
  const { errors } = JSON.parse(reply.body) as { errors?: { field?: string; detail: string }[] };
  if (errors === undefined) return reply;
  const named = errors.map((one) => ({ ...one, field: outsideName(one.field ?? ""), detail: inSnakeCase(one.detail) }));
  return restated(reply, { errors: named, detail: named.map(({ field, detail }) => `${field}: ${detail}`).join("; ") });
}

/** Two people need two names, and a server without tokens has only one. */
export const NAMES_HINT =
  "this server asks for no token, so everybody has one name here: set MAKEGOOD_TOKENS (name:secret,…) to give each person their own";

function restated(
  reply: Reply,
  change: { readonly status?: number; readonly detail?: string; readonly errors?: unknown },
): Reply {
  const body = { ...(JSON.parse(reply.body) as Record<string, unknown>), ...change };
  return { ...reply, status: change.status ?? reply.status, body: JSON.stringify(body) };
}

/** A number in the path; null when it is none, which is as good as unknown. */
export function numberIn(request: ApiRequest, name: string): number | null {
  const text = request.params.get(name) ?? "";
  return /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : null;
}

export function notFound(what: "group" | "candidate" | "rule" | "action" | "redrive", id: string): Reply {
  return problem(`${what}_not_found`, `there is no ${what} ${id.slice(0, 100)}`);
}
