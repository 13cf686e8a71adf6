/**
 * The webhook sink: an http sink that signs each attempt by Standard Webhooks 1.0.0. The id is the message's and stays
 * the same over retries, the timestamp is the attempt's. Everything but a 2xx is tried again, and 410 disables the sink.
 */
import { MakegoodError } from "../message/errors.js";
import { systemClock } from "../platform/clock.js";
import { createPoster } from "./poster.js";
import { messageHeaders } from "./request-headers.js";
import { checkSecret, signWebhook } from "./sign-webhook.js";
import { outcomeOfAnswer } from "./verdict.js";
export function webhookSink(options, deps = {}) {
    const { secrets } = options;
    if (secrets.length === 0)
        throw new MakegoodError("sink_refused", "a webhook sink needs a secret");
    for (const secret of secrets) {
        const reason = checkSecret(secret);
        if (reason !== null)
            throw new MakegoodError("sink_refused", reason);
    }
    const clock = deps.clock ?? systemClock;
    const poster = createPoster(options, deps);
    return {
        kind: "webhook",
        async deliver(delivery, context) {
            if (delivery.id.includes(".")) {
                return { kind: "reject", code: "request_invalid", error: "a webhook id must not contain a dot" };
            }
            const timestampS = Math.floor(clock.wallMs() / 1_000);
            const headers = messageHeaders(delivery);
            headers.push("webhook-id", delivery.id, "webhook-timestamp", String(timestampS));
            headers.push("webhook-signature", signWebhook(delivery.id, timestampS, delivery.payload, secrets));
            const answer = await poster.post(delivery.payload, headers, context);
            return outcomeOfAnswer(answer, webhookVerdict, clock.wallMs());
        },
        close: () => poster.close(),
    };
}
export function webhookVerdict(status) {
    if (status >= 200 && status < 300)
        return "delivered";
    return status === 410 ? "disable" : "retry";
}
//# sourceMappingURL=webhook.js.map