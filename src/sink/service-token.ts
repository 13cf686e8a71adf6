/**
 * Service tokens: a JWT that says which service asks, for which tenant and about which reservation, for at most five minutes.
 * HS256 with a secret of at least 32 bytes, or ES256 with a P-256 key; nothing else is ever signed with.
 */
import { createPrivateKey, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { MakegoodError } from "../message/errors.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import { createIds } from "../platform/ids.ts";
import { type Random, systemRandom } from "../platform/random.ts";

/** What one token is asked for. */
export interface ServiceClaims {
  /** Null: the service itself speaks; else the tenant on whose behalf it does. */
  readonly subject: string | null;
  readonly tenantId: string;
  readonly reservationId: string;
}

/** All the settlement client needs of a signer: one of ours, or a few lines around another. */
export interface ServiceSigner {
  sign(claims: ServiceClaims): Promise<string>;
}

export type SigningKey =
  | { readonly alg: "HS256"; readonly secret: string | Uint8Array }
  /** PEM (PKCS #8 or SEC 1), or a key object. */
  | { readonly alg: "ES256"; readonly privateKey: string | KeyObject };

export type ServiceSignerOptions = SigningKey & {
  /** Who signs; also the subject in mode `service`. */
  readonly issuer: string;
  readonly audience: string;
  /** Lets the receiver tell two keys apart during a rotation. */
  readonly keyId?: string | undefined;
  /** At most five minutes, which is also the default. */
  readonly lifetimeMs?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
};

export const TOKEN_LIFETIME_MS_MAX = 300_000;
export const SECRET_BYTES_MIN = 32;

export function createServiceSigner(options: ServiceSignerOptions): ServiceSigner {
  const { issuer, audience, keyId, lifetimeMs = TOKEN_LIFETIME_MS_MAX, clock = systemClock, random = systemRandom } = options;
  if (!(lifetimeMs >= 1_000 && lifetimeMs <= TOKEN_LIFETIME_MS_MAX)) {
    throw refused(`lifetimeMs must be from 1000 to ${TOKEN_LIFETIME_MS_MAX}`);
  }
  if (!issuer || !audience) throw refused("issuer and audience are both needed");
  const key = options.alg === "HS256" ? secretBytes(options.secret) : privateKeyOf(options.privateKey);
  const header = { alg: options.alg, typ: "JWT", ...(keyId === undefined ? {} : { kid: keyId }) };
  const ids = createIds(clock, random);
  return {
    sign({ subject, tenantId, reservationId }) {
      const issuedAt = Math.floor(clock.wallMs() / 1_000);
      return new SignJWT({ tenant_id: tenantId, reservation_id: reservationId })
        .setProtectedHeader(header)
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(subject ?? issuer)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + Math.floor(lifetimeMs / 1_000))
        .setJti(ids())
        .sign(key);
    },
  };
}

/** A short secret can be guessed from one token, offline. */
export function secretBytes(secret: string | Uint8Array): Uint8Array {
  const bytes = typeof secret === "string" ? Buffer.from(secret) : secret;
  if (bytes.length < SECRET_BYTES_MIN) throw refused(`a secret of HS256 needs at least ${SECRET_BYTES_MIN} bytes`);
  return bytes;
}

function privateKeyOf(given: string | KeyObject): KeyObject {
  const key = typeof given === "string" ? readPem(given) : given;
  return checkCurve(key, "private");
}

/** ES256 is P-256 and nothing else; a key of another kind is a mistake that should show at start. */
export function checkCurve(key: KeyObject, type: "private" | "public"): KeyObject {
  if (key.type === type && key.asymmetricKeyDetails?.namedCurve === "prime256v1") return key;
  throw refused(`ES256 needs a ${type} key on the curve P-256`);
}

function readPem(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    // The error of the parser may quote the key: it stays behind as the cause and out of the text.
    throw new MakegoodError("invalid_config", "the private key of ES256 is not a readable PEM", {}, error);
  }
}

export function refused(what: string): MakegoodError {
  return new MakegoodError("invalid_config", `service token: ${what}`);
}
