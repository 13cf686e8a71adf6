/**
 * The addresses of the recovery engine, for the one table of routes.
 */
import type { Handler } from "../../http.ts";
import type { Kernel } from "../../kernel.ts";
import { candidateHandlers } from "./candidates.ts";
import { failureHandlers } from "./failures.ts";
import { groupHandlers } from "./groups.ts";
import { redriveHandlers } from "./redrives.ts";
import { ruleHandlers } from "./rules.ts";

export interface RecoveryRoute {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly handler: Handler;
}

export function recoveryRoutes(kernel: Kernel): readonly RecoveryRoute[] {
  const failures = failureHandlers(kernel);
  const groups = groupHandlers(kernel);
  const candidates = candidateHandlers(kernel);
  const rules = ruleHandlers(kernel);
  const redrives = redriveHandlers(kernel);
  const route = (method: RecoveryRoute["method"], path: string, handler: Handler): RecoveryRoute => ({ method, path, handler });
  const base = "/api/v1/recovery";
  return [
    route("POST", `${base}/ingest`, failures.ingest),
    route("POST", `${base}/evaluate`, failures.evaluate),
    route("POST", `${base}/suggest`, failures.suggest),
    route("POST", `${base}/approve`, candidates.approveById),
    route("GET", `${base}/groups`, groups.list),
    route("GET", `${base}/groups/:id`, groups.get),
    route("GET", `${base}/groups/:id/occurrences`, groups.occurrences),
    route("POST", `${base}/groups/:id/merge`, groups.merge),
    route("POST", `${base}/groups/:id/split`, groups.split),
    route("POST", `${base}/groups/:id/suggest`, groups.suggest),
    route("GET", `${base}/group-rules`, rules.groupRules),
    route("DELETE", `${base}/group-rules/:id`, rules.removeGroupRule),
    route("GET", `${base}/candidates`, candidates.list),
    route("GET", `${base}/candidates/:id`, candidates.get),
    route("PATCH", `${base}/candidates/:id`, candidates.patch),
    route("DELETE", `${base}/candidates/:id`, candidates.remove),
    route("POST", `${base}/candidates/:id/approve`, candidates.approve),
    route("POST", `${base}/candidates/:id/reject`, candidates.reject),
    route("POST", `${base}/candidates/:id/execute`, candidates.execute),
    route("GET", `${base}/rules`, rules.list),
    route("GET", `${base}/rules/:id`, rules.get),
    route("PUT", `${base}/rules/:id`, rules.put),
    route("DELETE", `${base}/rules/:id`, rules.remove),
    route("GET", `${base}/rules/:id/history`, rules.history),
    route("GET", `${base}/actions`, rules.actions),
    route("GET", `${base}/actions/:id`, rules.action),
    route("PUT", `${base}/actions/:id`, rules.putAction),
    route("GET", `${base}/provenance`, groups.provenance),
    route("GET", `${base}/stats`, groups.stats),
    route("GET", "/api/v1/redrives", redrives.list),
    route("POST", "/api/v1/redrives", redrives.start),
    route("GET", "/api/v1/redrives/:id", redrives.get),
    route("GET", "/api/v1/redrives/:id/items", redrives.items),
    route("POST", "/api/v1/redrives/:id/pause", redrives.pause),
    route("POST", "/api/v1/redrives/:id/resume", redrives.resume),
    route("POST", "/api/v1/redrives/:id/cancel", redrives.cancel),
    route("POST", "/api/v1/messages/:id/edit", redrives.edit),
  ];
}
