/**
 * Every handler by the name of its route: a route without one, or one that answers otherwise than its route says, does not compile.
 */
import type { RouteId } from "../../contract/addresses.ts";
import type { Health } from "../health.ts";
import type { Kernel } from "../kernel.ts";
import type { Reply } from "../problem.ts";
import type { Asked } from "../read-request.ts";
import { auditHandlers } from "./audit.ts";
import { counting, FAILURES } from "./failures.ts";
import { interventionHandlers, messageHandlers } from "./messages.ts";
import { pageHandlers } from "./pages.ts";
import { probeHandlers } from "./probes.ts";
import { CANDIDATES, GROUPS, REDRIVES, RULES } from "./recovery.ts";
import { recoveryHandlers } from "./recovery-request.ts";
import { topicHandlers } from "./topics.ts";

export type Handler<Id extends RouteId> = (asked: Asked<Id>) => Promise<Reply> | Reply;

/** The handlers of some routes. */
export type Handlers<Id extends RouteId = RouteId> = { readonly [One in Id]: Handler<One> };

export function createHandlers(kernel: Kernel, health: Health): Handlers {
  const recovery = recoveryHandlers(kernel, { ...FAILURES, ...GROUPS, ...CANDIDATES, ...RULES, ...REDRIVES });
  return {
    ...pageHandlers(health, kernel.basePath),
    ...probeHandlers(health, kernel.basePath),
    ...topicHandlers(kernel),
    ...messageHandlers(kernel),
    ...interventionHandlers(kernel),
    ...auditHandlers(kernel),
    ...recovery,
    ingestFailure: counting(kernel, recovery.ingestFailure),
  };
}
