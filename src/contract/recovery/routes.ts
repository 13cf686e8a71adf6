/**
 * The addresses of the recovery engine, together.
 */
import { CANDIDATE_ROUTES } from "./candidates.ts";
import { FAILURE_ROUTES } from "./failures.ts";
import { GROUP_ROUTES } from "./groups.ts";
import { REDRIVE_ROUTES } from "./redrives.ts";
import { RULE_ROUTES } from "./rules.ts";

// Named parts: without them the declarations of the package repeat every schema here.
export const RECOVERY_ROUTES: typeof FAILURE_ROUTES &
  typeof GROUP_ROUTES &
  typeof CANDIDATE_ROUTES &
  typeof RULE_ROUTES &
  typeof REDRIVE_ROUTES = { ...FAILURE_ROUTES, ...GROUP_ROUTES, ...CANDIDATE_ROUTES, ...RULE_ROUTES, ...REDRIVE_ROUTES };
