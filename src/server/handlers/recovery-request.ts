/**
 * What every recovery handler needs of a request: the engine (or 501), who asks and as what, an id in the path, and the answer to a
 * version that has moved on.
 */
import type { RouteId } from "../../contract/addresses.ts";
import { RECOVERY_ROUTES } from "../../contract/recovery/routes.ts";
import { isMakegoodError } from "../../message/errors.ts";
import type { Actor, Recovery } from "../../recovery/recovery.ts";
import { recoveryOf } from "../../store/recovery.ts";
import type { Kernel } from "../kernel.ts";
import { problem, problemOf, Refusal, type Reply } from "../problem.ts";
import type { Asked } from "../read-request.ts";
import type { Handler, Handlers } from "./handlers.ts";

type RecoveryHandler<Id extends RouteId> = (recovery: Recovery, asked: Asked<Id>, actor: Actor) => Promise<Reply>;

/** Each answers 501 where there is no engine, 400 for an actor type that nobody may claim. */
export function recoveryHandlers<Id extends RouteId>(
  kernel: Kernel,
  handlers: { readonly [One in Id]: RecoveryHandler<One> },
): Handlers<Id> {
  const made = Object.entries(handlers).map(([id, handle]) => [id, recoveryHandler(kernel, handle as RecoveryHandler<RouteId>)]);
  return Object.fromEntries(made) as Handlers<Id>;
}

function recoveryHandler(kernel: Kernel, handle: RecoveryHandler<RouteId>): Handler<RouteId> {
  return async (asked) => {
    const { recovery } = kernel;
    if (recovery === null) return unavailable(kernel);
    const type = asked.header("x-actor-type") ?? "human";
    if (type !== "human" && type !== "agent") {
      return problem("invalid_request", "the header x-actor-type must be human or agent; absent: human");
    }
    try {
      return await handle(recovery, asked, { actor: asked.actor, actorType: type });
    } catch (error) {
      const reply = answerTo(error, asked);
      if (reply === undefined) throw error;
      return reply;
    }
  };
}

/** The answer where there is no engine, whatever is asked of it; null: there is one, or it is not needed. */
export function withoutEngine(kernel: Kernel, id: RouteId): Reply | null {
  const needed = Object.hasOwn(RECOVERY_ROUTES, id) || id === "editMessage";
  return needed && kernel.recovery === null ? unavailable(kernel) : null;
}

function unavailable({ mg }: Kernel): Reply {
  const detail =
    recoveryOf(mg.store) === null
      ? `recovery records need PostgreSQL, and this server's store is ${mg.store.traits.name}`
      : "recovery is switched off on this server (MAKEGOOD_RECOVERY=off)";
  return problem("needs_postgres", detail);
}

/** A few of the engine's refusals know something of HTTP; the others are answered as everywhere. */
function answerTo(error: unknown, request: Asked<RouteId>): Reply | undefined {
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

/** What the engine calls a member, as it is called over HTTP. */
const outsideName = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

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

/** The number in a path; what is none is as good as unknown. */
export const numbered =
  (what: "group" | "candidate") =>
  ({ params: { id } }: { readonly params: { readonly id: string } }): number => {
    if (!/^[1-9][0-9]{0,14}$/.test(id)) throw notFound(what, id);
    return Number(id);
  };

export function notFound(what: "group" | "candidate" | "rule" | "action" | "redrive", id: string): Refusal {
  return new Refusal(problem(`${what}_not_found`, `there is no ${what} ${id.slice(0, 100)}`));
}
