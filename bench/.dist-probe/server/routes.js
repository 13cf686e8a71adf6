import { interventionHandler } from "./handlers-interventions.js";
import { messageHandlers } from "./handlers-messages.js";
import { pageHandler } from "./handlers-page.js";
import { probeHandlers } from "./handlers-probes.js";
import { topicHandlers } from "./handlers-topics.js";
export function routes(kernel, health, metrics) {
    const messages = messageHandlers(kernel);
    const topics = topicHandlers(kernel);
    const probes = probeHandlers(health, metrics);
    const route = (method, path, handler, open = false) => ({
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
    ];
}
//# sourceMappingURL=routes.js.map