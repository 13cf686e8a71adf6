import type { ClaimedMessage, Ordering } from "./message.ts";
import type { Outcome } from "./outcome.ts";
import { type RetryPolicy } from "./retry-policy.ts";
import type { Settlement } from "./settlement.ts";
export interface DecideRules {
    readonly policy: RetryPolicy;
    readonly ordering: Ordering;
    readonly onUnknown: "retry" | "hold";
}
/** What decide() reads of a claimed message. */
export type Decided = Pick<ClaimedMessage, "attempt" | "base" | "handedDown" | "suspicion" | "leaseSize">;
/** `random` is in [0, 1): the only chance in the decision, passed in. */
export declare function decide(message: Decided, outcome: Outcome, rules: DecideRules, random: number): Settlement;
