/**
 * What every recovery handler needs of a request: the engine (or 501), who asks and as what, an id in the path, and the answer to a
 * version that has moved on.
 */
import type { RouteId } from "../../contract/addresses.ts";
import { CONDITION_FAILED } from "../../contract/openapi.ts";
import { isOfEngine } from "../../contract/route.ts";
import { isMakegoodError, MakegoodError } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Actor, Recovery } from "../../recovery/recovery.ts";
import { recoveryOf } from "../../store/recovery.ts";
import { wireName } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import { problem, problemOf, type Reply } from "../problem.ts";
import { type Asked, refusalOf } from "../read-request.ts";
import type { Handler, Handlers } from "./handlers.ts";

type RecoveryHandler<Id extends RouteId> = (recovery: Recovery, asked: Asked<Id>, actor: Actor) => Promise<Reply>;

/** Each has the engine (the app has refused where there is none) and answers 400 for an actor type that nobody may claim. */
export function recoveryHandlers<Id extends RouteId>(
  kernel: Kernel,
  handlers: { readonly [One in Id]: RecoveryHandler<One> },
): Handlers<Id> {
  const made = Object.entries(handlers).map(([id, handle]) => [id, recoveryHandler(kernel, handle as RecoveryHandler<RouteId>)]);
  return Object.fromEntries(made) as Handlers<Id>;
}

function recoveryHandler(kernel: Kernel, handle: RecoveryHandler<RouteId>): Handler<RouteId> {
  return async (asked) => {
    const type = asked.header("x-actor-type") ?? "human";
    if (type !== "human" && type !== "agent")
      throw refusalOf("invalid_request", "x-actor-type", "must be human or agent; absent: human");
    try {
      return await again(() => handle(kernel.recovery as Recovery, asked, { actor: asked.actor, actorType: type }));
    } catch (error) {
      if (!isMakegoodError(error)) throw error;
      const fails = error.code === "version_conflict" && asked.header("if-match") !== null;
      const status = fails ? CONDITION_FAILED : undefined;
      return problemOf(inOutsideWords(error, asked.named), status) as Reply;
    }
  };
}

const TRIES_MAX = 5;

/** Two writes in each other's way: one was rolled back as a whole, and has its turn again. */
async function again(handle: () => Promise<Reply>): Promise<Reply> {
  for (let tried = 1; ; tried++) {
    try {
      return await handle();
    } catch (error) {
      if (tried === TRIES_MAX || !isMakegoodError(error) || error.code !== "retry_transaction") throw error;
    }
  }
}

/** The answer where there is no engine, whatever is asked of it; null: there is one, or it is not needed. */
export function withoutEngine({ recovery, mg }: Kernel, id: RouteId): Reply | null {
  if (recovery !== null || !(isOfEngine(id) || id === "editMessage")) return null;
  const detail =
    recoveryOf(mg.store) === null
      ? `recovery records need PostgreSQL, and this server's store is ${mg.store.traits.name}`
      : "recovery is switched off on this server (MAKEGOOD_RECOVERY=off)";
  return problem("needs_postgres", detail);
}

/** Two people need two names, and a server without tokens has only one. */
export const NAMES_HINT =
  "this server asks for no token, so everybody has one name here: set MAKEGOOD_TOKENS (name:secret,…) to give each person their own";

/** Texts of the engine name members, such as generationMax; outside they are snake_case. */
const inSnakeCase = (text: string): string => text.replace(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, wireName);

function inOutsideWords(error: MakegoodError, named: boolean): MakegoodError {
  const { code, message, detail } = error;
  if (code === "nothing_selected") return new MakegoodError(code, inSnakeCase(message), detail);
  if (code === "approval_needed" && detail.needed === 2 && !named)
    return new MakegoodError(code, `${message}; ${NAMES_HINT}`, detail);
  if (code !== "invalid_request" || !Array.isArray(detail.errors)) return error;
  const errors = (detail.errors as Fault[]).map((one) => ({ field: wireName(one.field), detail: inSnakeCase(one.detail) }));
  return new MakegoodError(code, errors.map((one) => `${one.field}: ${one.detail}`).join("; "), { ...detail, errors });
}

type Kind = "group" | "candidate" | "rule" | "action" | "redrive";

interface Named {
  readonly params: { readonly id: string };
}

export function notFound(what: Kind, id: string): MakegoodError {
  return new MakegoodError(`${what}_not_found`, `there is no ${what} ${id.slice(0, 100)}`);
}

/** The number in a path; what is none is as good as unknown. */
export const numbered = (what: Kind, { params: { id } }: Named): number => {
  if (!/^[1-9][0-9]{0,14}$/.test(id)) throw notFound(what, id);
  return Number(id);
};

export function redriveId({ params: { id } }: Named): string {
  if (!isUuid(id)) throw notFound("redrive", id);
  return id;
}
