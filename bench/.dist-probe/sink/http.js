import { systemClock } from "../platform/clock.js";
import { createPoster } from "./poster.js";
import { messageHeaders } from "./request-headers.js";
import { httpVerdict, outcomeOfAnswer } from "./verdict.js";
export function httpSink(options, deps = {}) {
    const clock = deps.clock ?? systemClock;
    const poster = createPoster(options, deps);
    const verdictOf = (status) => options.statusMap?.[status] ?? httpVerdict(status);
    const sink = {
        kind: "http",
        async deliver(delivery, context) {
            const answer = await poster.post(delivery.payload, messageHeaders(delivery), context);
            return outcomeOfAnswer(answer, verdictOf, clock.wallMs());
        },
        close: () => poster.close(),
    };
    const { probe } = options;
    return probe === undefined ? sink : { ...sink, probe };
}
//# sourceMappingURL=http.js.map