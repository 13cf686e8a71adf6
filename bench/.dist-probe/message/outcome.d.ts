/**
 * What a sink answered, as a value. A sink never throws to say no: `retry` is about the world (try again later),
 * `reject` is about the message (it will never fit), `unknown` means that the effect may or may not have landed.
 */
export type Outcome = {
    readonly kind: "delivered";
}
/** The receiver knew the key already: as good as delivered, and recorded as what it was. */
 | {
    readonly kind: "duplicate";
} | {
    readonly kind: "retry";
    readonly code: string;
    readonly error: string;
    /** What the receiver asked for; clamped by decide(). */
    readonly retryAfterMs?: number | undefined;
    /** Credentials or configuration look wrong: a person should look, retrying alone will not help. */
    readonly alert?: boolean | undefined;
} | {
    readonly kind: "reject";
    readonly code: string;
    readonly error: string;
} | {
    readonly kind: "unknown";
    readonly code: string;
    readonly error: string;
}
/** The receiver does not want anything any more (410 to a webhook): the topic's sink is disabled and the message held. */
 | {
    readonly kind: "disable";
    readonly code: string;
    readonly error: string;
}
/** Not an answer of a sink: the claim was lost (a crash, a stall), found by whoever reclaimed the lease. */
 | {
    readonly kind: "lost";
}
/** Not an answer of a sink: our own shutdown cut the attempt short. */
 | {
    readonly kind: "interrupted";
};
export declare const DELIVERED: Outcome;
export declare const DUPLICATE: Outcome;
