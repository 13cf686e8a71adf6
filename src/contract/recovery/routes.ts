/**
 * The addresses of the recovery engine, together: each answers 501 where there is none, and takes who acts from a header.
 */
import type { RouteId } from "../addresses.ts";
import type { Route } from "../route.ts";
import { CANDIDATE_ROUTES } from "./candidates.ts";
import { FAILURE_ROUTES } from "./failures.ts";
import { GROUP_ROUTES } from "./groups.ts";
import { REDRIVE_ROUTES } from "./redrives.ts";
import { RULE_ROUTES } from "./rules.ts";

const ofTheEngine = <R extends Partial<Record<RouteId, Route>>>(some: R): R => {
  const made = Object.entries<Route>(some).map(([id, route]) => {
    const { headers = [], errors = [] } = route;
    return [id, { ...route, headers: [...headers, "x-actor-type"], errors: [...errors, "needs_postgres"] }];
  });
  return Object.fromEntries(made) as R;
};

// Named parts: without them the declarations of the package repeat every schema here.
export const RECOVERY_ROUTES: typeof FAILURE_ROUTES &
  typeof GROUP_ROUTES &
  typeof CANDIDATE_ROUTES &
  typeof RULE_ROUTES &
  typeof REDRIVE_ROUTES = ofTheEngine({
  ...FAILURE_ROUTES,
  ...GROUP_ROUTES,
  ...CANDIDATE_ROUTES,
  ...RULE_ROUTES,
  ...REDRIVE_ROUTES,
});
