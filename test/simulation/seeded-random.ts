/**
 * Randomness from a seed: the same seed gives the same numbers and bytes for ever. Each actor has a stream of its own, named by what it
 * is, so that taking one actor out of a history does not change what the others draw.
 */
import type { Random } from "../../src/platform/random.ts";

/** A number from a name: FNV-1a with a last stir. */
export function seedOf(...parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5;
  for (const char of parts.join("/")) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/** sfc32: small, fast, and good enough for histories. */
export class SeededRandom implements Random {
  #a: number;
  #b: number;
  #c = 1;
  #d: number;

  constructor(...name: readonly (string | number)[]) {
    this.#a = seedOf(...name, "a");
    this.#b = seedOf(...name, "b");
    this.#d = seedOf(...name, "d");
    for (let i = 0; i < 12; i++) this.word();
  }

  word(): number {
    const sum = (this.#a + this.#b + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }

  next(): number {
    return this.word() / 4_294_967_296;
  }

  bytes(n: number): Uint8Array {
    const bytes = new Uint8Array(n);
    for (let i = 0; i < n; i++) bytes[i] = this.word() & 0xff;
    return bytes;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)] as T;
  }
}
