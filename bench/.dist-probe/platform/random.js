/**
 * The only door to randomness: jitter, ids, tokens.
 */
import { randomBytes } from "node:crypto";
export const systemRandom = {
    next: () => Math.random(),
    bytes: (n) => randomBytes(n),
};
//# sourceMappingURL=random.js.map