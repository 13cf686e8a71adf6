/**
 * The only door to randomness: jitter, ids, tokens.
 */
import { randomBytes } from "node:crypto";

export interface Random {
  /** In [0, 1). */
  next(): number;
  bytes(n: number): Uint8Array;
}

export const systemRandom: Random = {
  next: () => Math.random(),
  bytes: (n) => randomBytes(n),
};
