/**
 * Where a retry is decided: one pure function from (claimed message, outcome, policy, jitter) to the settlement that a
 * store writes. Attempts are bounded here (I6): the end is `dead` or a named hold, never silence.
 */
import { LIMITS } from "./limits.js";
import { retryDelayMs } from "./retry-policy.js";
const DELIVERED = Object.freeze({ kind: "delivered", outcome: "delivered" });
const DUPLICATE = Object.freeze({ kind: "delivered", outcome: "duplicate" });
/** `random` is in [0, 1): the only chance in the decision, passed in. */
export function decide(message, outcome, rules, random) {
    switch (outcome.kind) {
        case "delivered":
            return DELIVERED;
        case "duplicate":
            return DUPLICATE;
        case "reject":
            return {
                kind: "dead",
                blocksOrder: rules.ordering === "strict",
                outcome: "reject",
                code: outcome.code,
                error: outcome.error,
            };
        case "disable":
            return {
                kind: "retry",
                delayMs: 0,
                counted: false,
                suspicion: message.suspicion,
                outcome: "retry",
                code: outcome.code,
                error: outcome.error,
            };
        case "interrupted":
            return {
                kind: "retry",
                delayMs: 0,
                counted: false,
                suspicion: message.suspicion,
                outcome: "interrupted",
                code: "shutdown",
                error: "the worker shut down before the sink answered",
            };
        case "unknown":
            if (rules.onUnknown === "hold") {
                return {
                    kind: "hold",
                    reason: "outcome_unknown",
                    counted: true,
                    outcome: "unknown",
                    code: outcome.code,
                    error: outcome.error,
                };
            }
            return failed(message, "unknown", outcome.code, outcome.error, rules, random, 0);
        case "retry": {
            const asked = Math.min(Math.max(outcome.retryAfterMs ?? 0, 0), LIMITS.retryAfterMsMax);
            return failed(message, "retry", outcome.code, outcome.error, rules, random, asked);
        }
        case "lost":
            return lost(message, rules, random);
    }
}
/** A counted failure: wait and try again, or die when this generation's budget is spent (CON-21: at the attempt that reaches it). */
function failed(message, outcome, code, error, rules, random, askedMs) {
    const spent = message.attempt - message.base;
    if (spent >= rules.policy.attemptsMax) {
        return { kind: "dead", blocksOrder: rules.ordering === "strict", outcome, code, error };
    }
    const delayMs = Math.max(retryDelayMs(rules.policy, message.handedDown ? spent + 1 : spent, random), askedMs);
    return { kind: "retry", delayMs, counted: true, suspicion: message.suspicion, outcome, code, error };
}
/**
 * A lost lease over several messages does not say which of them killed the worker: none is charged, all come back as
 * suspects in smaller batches, and alone after that. A lease over one message names it: that attempt counts like any other.
 */
function lost(message, rules, random) {
    const error = "the lease expired: the worker crashed, stalled or was cut off";
    if (message.leaseSize === 1 || message.suspicion === 2)
        return failed(message, "lost", "lease_lost", error, rules, random, 0);
    const suspicion = Math.min(message.suspicion + 1, 2);
    return { kind: "retry", delayMs: 0, counted: false, suspicion, outcome: "lost", code: "lease_lost", error };
}
//# sourceMappingURL=decide.js.map