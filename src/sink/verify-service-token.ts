/**
 * The other end of a service token, for the service that is called: only keys that were given, each with its own algorithm,
 * and only tokens with issuer, audience, subject, id and an end at most five minutes after their beginning. A token is
 * good once. It answers with a value and never throws.
 */
import { createPublicKey, type KeyObject } from "node:crypto";
import { errors, type JWTPayload, jwtVerify } from "jose";
import { type Clock, systemClock } from "../platform/clock.ts";
import { checkCurve, refused, secretBytes, TOKEN_LIFETIME_MS_MAX } from "./service-token.ts";

export type VerifyingKey = { readonly keyId?: string | undefined } & (
  | { readonly alg: "HS256"; readonly secret: string | Uint8Array }
  | { readonly alg: "ES256"; readonly publicKey: string | KeyObject }
);

export interface ServiceVerifierOptions {
  readonly keys: readonly VerifyingKey[];
  readonly issuer: string;
  readonly audience: string;
  /** How far the two clocks may be apart. */
  readonly skewMs?: number | undefined;
  /** How many ids of used tokens are remembered; beyond that new tokens are refused rather than old ones forgotten. */
  readonly usedMax?: number | undefined;
  readonly clock?: Clock | undefined;
}

export type Verified =
  | {
      readonly ok: true;
      readonly subject: string;
      readonly tenantId: string;
      readonly reservationId: string;
      readonly tokenId: string;
    }
  | { readonly ok: false; readonly status: 401 | 503; readonly reason: string };

export interface ServiceVerifier {
  /** Takes the value of an Authorization header, or the bare token. */
  verify(authorization: string | null | undefined): Promise<Verified>;
}

const SKEW_MS = 60_000;
const USED_MAX = 100_000;
const TOKEN_CHARS_MAX = 4_096;

export function createServiceVerifier(options: ServiceVerifierOptions): ServiceVerifier {
  const { issuer, audience, skewMs = SKEW_MS, clock = systemClock } = options;
  const keys = keyTable(options.keys);
  const used = createUsed(options.usedMax ?? USED_MAX, clock);

  // `kid` is a name in our table and nothing else: never a path, a query or an address.
  const keyOf = ({ kid, alg }: { kid?: unknown; alg?: unknown }): Uint8Array | KeyObject => {
    const found = kid === undefined && keys.size === 1 ? [...keys.values()][0] : keys.get(kid as string);
    // The key decides the algorithm, not the token: a public key must never serve as an HMAC secret.
    if (!found || found.alg !== alg) throw new errors.JOSEAlgNotAllowed("no such key for this algorithm");
    return found.key;
  };

  return {
    async verify(authorization) {
      const token = /^(?:bearer +)?([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(authorization ?? "")?.[1];
      if (token === undefined || token.length > TOKEN_CHARS_MAX) return no("there is no service token");
      try {
        const { payload } = await jwtVerify(token, async (header) => keyOf(header) as Uint8Array, {
          algorithms: ["HS256", "ES256"],
          issuer,
          audience,
          clockTolerance: skewMs / 1_000,
          currentDate: new Date(clock.wallMs()),
          requiredClaims: ["exp", "iat", "sub", "jti"],
          maxTokenAge: TOKEN_LIFETIME_MS_MAX / 1_000,
        });
        return accept(payload);
      } catch (error) {
        return no(error instanceof errors.JOSEError ? error.code : "the token cannot be read");
      }
    },
  };

  function accept({ iat = 0, exp = 0, jti = "", sub = "", tenant_id, reservation_id }: JWTPayload): Verified {
    if ((exp - iat) * 1_000 > TOKEN_LIFETIME_MS_MAX) return no("the token lives longer than five minutes");
    if (typeof tenant_id !== "string" || typeof reservation_id !== "string")
      return no("tenant_id and reservation_id are missing");
    if (jti === "" || jti.length > 255) return no("the token has no usable id");
    const use = used(jti, exp * 1_000 + skewMs);
    if (use === "again") return no("the token was used before");
    if (use === "full") return { ok: false, status: 503, reason: "too many tokens at once: come back with a new one" };
    return { ok: true, subject: sub, tenantId: tenant_id, reservationId: reservation_id, tokenId: jti };
  }
}

function no(reason: string): Verified {
  return { ok: false, status: 401, reason };
}

type Known = { readonly alg: VerifyingKey["alg"]; readonly key: Uint8Array | KeyObject };

function keyTable(given: readonly VerifyingKey[]): ReadonlyMap<string, Known> {
  const table = new Map<string, Known>();
  for (const one of given) {
    const name = one.keyId ?? "";
    if (table.has(name)) throw refused(`key ${JSON.stringify(name)} is given twice`);
    const key = one.alg === "HS256" ? secretBytes(one.secret) : publicKeyOf(one.publicKey);
    table.set(name, { alg: one.alg, key });
  }
  if (table.size === 0) throw refused("at least one key is needed");
  return table;
}

function publicKeyOf(given: string | KeyObject): KeyObject {
  return checkCurve(typeof given === "string" ? createPublicKey(given) : given, "public");
}

/** Remembers ids until their tokens have ended; in the order of use, which is nearly that of their ends. */
function createUsed(max: number, clock: Clock): (id: string, untilMs: number) => "first" | "again" | "full" {
  const untilOf = new Map<string, number>();
  return (id, untilMs) => {
    const now = clock.wallMs();
    for (const [old, endMs] of untilOf) {
      if (endMs > now) break;
      untilOf.delete(old);
    }
    if (untilOf.has(id)) return "again";
    if (untilOf.size >= max) return "full";
    untilOf.set(id, untilMs);
    return "first";
  };
}
