/**
 * The addresses of the recovery engine, together.
 */
import { CANDIDATE_ROUTES } from "./candidates.ts";
import { FAILURE_ROUTES } from "./failures.ts";
import { GROUP_ROUTES } from "./groups.ts";
import { REDRIVE_ROUTES } from "./redrives.ts";
import { RULE_ROUTES } from "./rules.ts";

export const RECOVERY_ROUTES = { ...FAILURE_ROUTES, ...GROUP_ROUTES, ...CANDIDATE_ROUTES, ...RULE_ROUTES, ...REDRIVE_ROUTES };
