/**
 * The route table: every address of the API, its method, who may use it and which handler answers. Documentation, the 405
 * answers and the tests of access read the same table.
 */
import type { Metrics } from "../../observe/metrics.ts";
import type { Health } from "../health.ts";
import type { Handler } from "../http.ts";
import type { Kernel } from "../kernel.ts";
import { auditHandlers } from "./audit.ts";
import { interventionHandler } from "./interventions.ts";
import { messageHandlers } from "./messages.ts";
import { pageHandler } from "./page.ts";
import { probeHandlers } from "./probes.ts";
import { recoveryRoutes } from "./recovery/recovery-routes.ts";
import { acknowledgeLossHandler } from "./store.ts";
import { topicHandlers } from "./topics.ts";

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** Answers without a token: what an orchestrator must be able to ask. */
  readonly open: boolean;
  readonly handler: Handler;
}

export function routes(kernel: Kernel, health: Health, metrics: Metrics): readonly Route[] {
  const messages = messageHandlers(kernel);
  const topics = topicHandlers(kernel);
  const probes = probeHandlers(health, metrics);
  const route = (method: Route["method"], path: string, handler: Handler, open = false): Route => ({
    method,
    path,
    open,
    handler,
  });
  const topic = "/api/v1/topics/:namespace/:name";
  return [
    route("GET", "/", pageHandler(health)),
    route("GET", "/livez", probes.livez, true),
    route("GET", "/readyz", probes.readyz, true),
    route("GET", "/health", probes.health),
    route("GET", "/metrics", probes.metrics),
    route("GET", "/api/v1/topics", topics.list),
    route("GET", topic, topics.get),
    route("PUT", topic, topics.put),
    route("DELETE", topic, topics.remove),
    route("POST", `${topic}/pause`, topics.pause),
    route("POST", `${topic}/resume`, topics.resume),
    route("GET", "/api/v1/messages", messages.list),
    route("POST", "/api/v1/messages", messages.post),
    route("GET", "/api/v1/messages/:id", messages.get),
    route("POST", "/api/v1/messages/:id/replay", interventionHandler(kernel, "replay")),
    route("POST", "/api/v1/messages/:id/resolve", interventionHandler(kernel, "resolve")),
    route("POST", "/api/v1/messages/:id/discard", interventionHandler(kernel, "discard")),
    route("POST", "/api/v1/store/acknowledge-loss", acknowledgeLossHandler(kernel)),
    ...auditHandlers(kernel).map(({ path, handler }) => route("POST", path, handler)),
    ...recoveryRoutes(kernel).map(({ method, path, handler }) => route(method, path, handler)),
  ];
}
