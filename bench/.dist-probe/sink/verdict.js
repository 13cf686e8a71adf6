/**
 * From an HTTP answer to an outcome: what the sinks on HTTP share. The status decides; the body only explains.
 */
import { DELIVERED, DUPLICATE } from "../message/outcome.js";
import { retryAfterMs } from "./retry-after.js";
/** What a status means to an http sink unless its statusMap says otherwise. */
export function httpVerdict(status) {
    if (status >= 200 && status < 300)
        return "delivered";
    if (status >= 500)
        return "retry";
    switch (status) {
        case 401: // Credentials are put right by a person; the message is fine (the outcome carries an alert).
        case 403:
        case 408:
        case 409: // "In flight" to many receivers, "duplicate" to some: the statusMap knows, the default is the safe one.
        case 425:
        case 429:
            return "retry";
        default:
            return "reject";
    }
}
/** Turns an answer into an outcome; `verdictOf` is where the sinks on HTTP differ. */
export function outcomeOfAnswer(answer, verdictOf, wallMs) {
    if (answer.kind === "failed")
        return answer.outcome;
    const { status } = answer;
    const kind = verdictOf(status);
    if (kind === "delivered")
        return DELIVERED;
    if (kind === "duplicate")
        return DUPLICATE;
    const code = `http_${status}`;
    const error = answer.body === "" ? `the receiver answered ${status}` : `the receiver answered ${status}: ${answer.body}`;
    if (kind !== "retry")
        return { kind, code, error };
    const alert = status === 401 || status === 403;
    return { kind, code, error, retryAfterMs: retryAfterMs(answer.retryAfter, wallMs), alert };
}
//# sourceMappingURL=verdict.js.map