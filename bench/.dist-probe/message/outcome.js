/**
 * What a sink answered, as a value. A sink never throws to say no: `retry` is about the world (try again later),
 * `reject` is about the message (it will never fit), `unknown` means that the effect may or may not have landed.
 */
export const DELIVERED = Object.freeze({ kind: "delivered" });
export const DUPLICATE = Object.freeze({ kind: "duplicate" });
//# sourceMappingURL=outcome.js.map