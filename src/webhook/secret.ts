/**
 * The secrets of webhooks: `whsec_` and base64 of 24 to 64 bytes, as Standard Webhooks 1.0.0 has them. A refusal never quotes one.
 */
import { MakegoodError } from "../message/errors.ts";
import { type Random, systemRandom } from "../platform/random.ts";

const PREFIX = "whsec_";
const BYTES_MIN = 24;
const BYTES_MAX = 64;

/** A new secret of 32 random bytes. Show it once; it cannot be read back. */
export function generateSecret(random: Random = systemRandom): string {
  return PREFIX + Buffer.from(random.bytes(32)).toString("base64");
}

/** The reason why a secret cannot be used, or null. */
export function checkSecret(secret: unknown): string | null {
  if (typeof secret !== "string" || !secret.startsWith(PREFIX)) return `a secret must start with ${PREFIX}`;
  const encoded = secret.slice(PREFIX.length);
  const key = Buffer.from(encoded, "base64");
  if (key.toString("base64").replace(/=+$/, "") !== encoded.replace(/=+$/, "")) return `a secret must be ${PREFIX} and base64`;
  if (key.length < BYTES_MIN || key.length > BYTES_MAX) {
    return `a secret must hold ${BYTES_MIN} to ${BYTES_MAX} bytes, not ${key.length}`;
  }
  return null;
}

/** The keys of one secret or of several; refused as `invalid_config` when there is none or one of them cannot be used. */
export function keysOf(secrets: string | readonly string[]): Uint8Array[] {
  const all: readonly unknown[] = Array.isArray(secrets) ? secrets : [secrets];
  if (all.length === 0) throw new MakegoodError("invalid_config", "there is no secret: give at least one");
  return all.map((secret) => {
    const reason = checkSecret(secret);
    if (reason !== null) throw new MakegoodError("invalid_config", reason);
    return Buffer.from((secret as string).slice(PREFIX.length), "base64");
  });
}
