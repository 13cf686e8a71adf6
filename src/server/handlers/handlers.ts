/** Every handler by the name of its route. Those of recovery get the engine (or 501), and who asks and as what. */
import type { RouteId } from "../../contract/addresses.ts";
import { CONDITION_FAILED } from "../../contract/openapi.ts";
import { isMakegoodError, MakegoodError } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import type { Actor, Recovery } from "../../recovery/recovery.ts";
import { homeOf } from "../../store/home.ts";
import type { Health } from "../health.ts";
import { problemOf, Refusal, type Reply, refused } from "../http.ts";
import { wireName } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import { type Asked, refusalOf } from "../read-request.ts";
import { AUDIT, EVIDENCE } from "./audit.ts";
import { counting, FAILURES } from "./failures.ts";
import { INTERVENTIONS, MESSAGES } from "./messages.ts";
import { OPERATIONS } from "./operations.ts";
import { PROBES } from "./probes.ts";
import { CANDIDATES, GROUPS, NAMES_HINT, REDRIVES } from "./recovery.ts";
import { STREAMS } from "./streams.ts";
import { TOPICS } from "./topics.ts";
import { VERIFY } from "./verify.ts";

export type Handler<Id extends RouteId> = (asked: Asked<Id>, kernel: Kernel, health: Health) => Promise<Reply> | Reply;

export type Handlers<Id extends RouteId = RouteId> = { readonly [One in Id]: Handler<One> };

type RecoveryHandler<Id extends RouteId> = (recovery: Recovery, asked: Asked<Id>, actor: Actor, kernel: Kernel) => Promise<Reply>;

export type RecoveryHandlers<Id extends RouteId> = { readonly [One in Id]: RecoveryHandler<One> };

/** Each has the engine (the app has refused where there is none) and answers 400 for an actor type that nobody may claim. */
function withEngine<Id extends RouteId>(handlers: RecoveryHandlers<Id>): Handlers<Id> {
  const made = Object.entries(handlers).map(([id, handle]) => [id, recoveryHandler(handle as RecoveryHandler<RouteId>)]);
  return Object.fromEntries(made) as Handlers<Id>;
}

const TRIES_MAX = 5;

function recoveryHandler(handle: RecoveryHandler<RouteId>): Handler<RouteId> {
  return async (asked, kernel) => {
    const type = asked.header("x-actor-type") ?? "human";
    if (type !== "human" && type !== "agent")
      throw refusalOf("invalid_request", "x-actor-type", "must be human or agent; absent: human");
    for (let tried = 1; ; tried++) {
      try {
        return await handle(kernel.mg.recovery as Recovery, asked, { actor: asked.actor, actorType: type }, kernel);
      } catch (error) {
        if (!isMakegoodError(error)) throw error;
        // Two writes in each other's way: one was rolled back as a whole, and has its turn again.
        if (error.code === "retry_transaction" && tried < TRIES_MAX) continue;
        const fails = error.code === "version_conflict" && asked.header("if-match") !== null;
        throw new Refusal(problemOf(inOutsideWords(error, asked.named), fails ? CONDITION_FAILED : undefined) as Reply);
      }
    }
  };
}

export function refuseWithoutEngine({ mg }: Kernel, id: RouteId): void {
  if (mg.recovery !== null || !Object.hasOwn(RECOVERY, id)) return;
  const off = "recovery is switched off on this server (MAKEGOOD_RECOVERY=off)";
  const less = `recovery records need PostgreSQL (DATABASE_URL, beside Redis too), and this server's store is ${mg.store.traits.name}`;
  throw refused("needs_postgres", homeOf(mg.store) === null ? less : off);
}

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

const RECOVERY = withEngine({ ...FAILURES, ...GROUPS, ...CANDIDATES, ...REDRIVES });
const FIRST: Omit<Handlers, keyof typeof RECOVERY> = {
  ...PROBES,
  ...TOPICS,
  ...MESSAGES,
  ...INTERVENTIONS,
  ...AUDIT,
  ...EVIDENCE,
  ...OPERATIONS,
  ...STREAMS,
  ...VERIFY,
};

export const HANDLERS: Handlers = { ...FIRST, ...RECOVERY, ingestFailure: counting(RECOVERY.ingestFailure) };
