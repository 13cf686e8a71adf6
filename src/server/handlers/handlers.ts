/**
 * Every handler by the name of its route: a route without one does not compile.
 */
import type { RouteId } from "../../contract/addresses.ts";
import type { Health } from "../health.ts";
import type { Reply } from "../http.ts";
import type { Kernel } from "../kernel.ts";
import type { Asked } from "../read-request.ts";
import { AUDIT } from "./audit.ts";
import { counting, FAILURES } from "./failures.ts";
import { INTERVENTIONS, MESSAGES } from "./messages.ts";
import { PAGES } from "./pages.ts";
import { PROBES } from "./probes.ts";
import { CANDIDATES, GROUPS, REDRIVES, RULES } from "./recovery.ts";
import { withEngine } from "./recovery-request.ts";
import { TOPICS } from "./topics.ts";

export type Handler<Id extends RouteId> = (asked: Asked<Id>, kernel: Kernel, health: Health) => Promise<Reply> | Reply;

/** The handlers of some routes. */
export type Handlers<Id extends RouteId = RouteId> = { readonly [One in Id]: Handler<One> };

const RECOVERY = withEngine({ ...FAILURES, ...GROUPS, ...CANDIDATES, ...RULES, ...REDRIVES });
const FIRST: Omit<Handlers, keyof typeof RECOVERY> = { ...PAGES, ...PROBES, ...TOPICS, ...MESSAGES, ...INTERVENTIONS, ...AUDIT };

export const HANDLERS: Handlers = { ...FIRST, ...RECOVERY, ingestFailure: counting(RECOVERY.ingestFailure) };
