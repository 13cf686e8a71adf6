/**
 * Service tokens: what we sign, and what a receiver built with our verifier refuses (attack 10 of the security table).
 */
import { createHmac, generateKeyPairSync } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { createServiceSigner } from "../../src/sink/service-token.ts";
import { createServiceVerifier } from "../../src/sink/verify-service-token.ts";
import { AUDIENCE, ISSUER, SECRET, startBilling, testSigner } from "./billing.ts";
import { movableClock, request, sceneOf } from "./scene.ts";

const CLAIMS = { subject: null, tenantId: "tenant-1", reservationId: "res-1" };
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const publicPem = ec.publicKey.export({ type: "spki", format: "pem" }).toString();

const verifier = () =>
  createServiceVerifier({
    keys: [
      { keyId: "shared", alg: "HS256", secret: SECRET },
      { keyId: "pair", alg: "ES256", publicKey: publicPem },
    ],
    issuer: ISSUER,
    audience: AUDIENCE,
  });

const now = () => Math.floor(Date.now() / 1_000);
const good = (): Record<string, unknown> => ({
  iss: ISSUER,
  aud: AUDIENCE,
  sub: ISSUER,
  iat: now(),
  exp: now() + 300,
  jti: crypto.randomUUID(),
  tenant_id: "tenant-1",
  reservation_id: "res-1",
});
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
/** A token made by hand, so that everything can be wrong with it. */
const forge = (header: object, claims: object, secret: string | Buffer = SECRET): string => {
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
};
const HS = { alg: "HS256", typ: "JWT", kid: "shared" };
const without = (name: string) => Object.fromEntries(Object.entries(good()).filter(([key]) => key !== name));

describe("what we sign", () => {
  it("HS256: issuer, audience, subject, tenant, reservation, an id of its own, five minutes at most", async () => {
    const signer = testSigner();
    const [one, two] = [await signer.sign(CLAIMS), await signer.sign(CLAIMS)];
    const claims = decodeJwt(one);
    expect(decodeProtectedHeader(one)).toEqual({ alg: "HS256", typ: "JWT" });
    expect(claims).toMatchObject({ iss: ISSUER, aud: AUDIENCE, sub: ISSUER, tenant_id: "tenant-1", reservation_id: "res-1" });
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(300);
    expect(decodeJwt(two).jti).not.toBe(claims.jti);
  });

  it("ES256: a P-256 key as PEM or object, with its key id", async () => {
    const privateKey = ec.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    for (const key of [privateKey, ec.privateKey]) {
      const signer = createServiceSigner({ alg: "ES256", privateKey: key, keyId: "pair", issuer: ISSUER, audience: AUDIENCE });
      const token = await signer.sign({ ...CLAIMS, subject: "tenant-1" });
      expect(await verifier().verify(`Bearer ${token}`)).toMatchObject({ ok: true, subject: "tenant-1", reservationId: "res-1" });
    }
  });

  it.each(["service", "tenant"] as const)("s2sSubjectMode %s decides who speaks", async (s2sSubjectMode) => {
    await using billing = await startBilling();
    await using scene = sceneOf(billing, { s2sSubjectMode });
    expect(await scene.client.finalize(request())).toMatchObject({ ok: true });
    expect(billing.calls[0]?.subject).toBe(s2sSubjectMode === "tenant" ? "tenant-1" : ISSUER);
  });

  it("refuses weak or wrong keys and long lives at start", () => {
    const common = { issuer: ISSUER, audience: AUDIENCE };
    expect(() => createServiceSigner({ ...common, alg: "HS256", secret: "short" })).toThrow(/32 bytes/);
    expect(() => createServiceSigner({ ...common, alg: "HS256", secret: SECRET, lifetimeMs: 300_001 })).toThrow(/lifetimeMs/);
    expect(() => createServiceSigner({ ...common, alg: "ES256", privateKey: rsa.privateKey })).toThrow(/P-256/);
    expect(() => createServiceSigner({ ...common, alg: "ES256", privateKey: "not a key" })).toThrow(/PEM/);
    expect(() => createServiceSigner({ ...common, issuer: "", alg: "HS256", secret: SECRET })).toThrow(/issuer/);
  });
});

describe("attack 10: hostile tokens are 401", () => {
  const publicBytes = Buffer.from(publicPem);
  const hostile: [string, () => string | Promise<string>][] = [
    ["nothing", () => ""],
    ["not a token", () => "Bearer a.b.c"],
    ["alg none", () => `${encode({ alg: "none" })}.${encode(good())}.`],
    ["alg none with a signature", () => forge({ ...HS, alg: "none" }, good())],
    ["the public key as an HMAC secret", () => forge({ ...HS, kid: "pair" }, good(), publicBytes)],
    ["the public key as an HMAC secret, no kid", () => forge({ alg: "HS256" }, good(), publicBytes)],
    ["RS256", () => new SignJWT(good()).setProtectedHeader({ alg: "RS256", kid: "pair" }).sign(rsa.privateKey)],
    ["a kid that is a path", () => forge({ ...HS, kid: "../../../../dev/null" }, good(), Buffer.alloc(32))],
    ["a kid that is a query", () => forge({ ...HS, kid: "x' UNION SELECT 'secret" }, good())],
    ["a kid of the prototype", () => forge({ ...HS, kid: "__proto__" }, good())],
    ["a key of its own in the header", () => forge({ ...HS, kid: "own", jwk: { kty: "oct", k: encode("x") } }, good())],
    ["an unknown critical header", () => forge({ ...HS, crit: ["x"], x: 1 }, good())],
    ["another secret", () => forge(HS, good(), "another secret of the same length....")],
    ["no exp", () => forge(HS, without("exp"))],
    ["no aud", () => forge(HS, without("aud"))],
    ["no iss", () => forge(HS, without("iss"))],
    ["no sub", () => forge(HS, without("sub"))],
    ["no jti", () => forge(HS, without("jti"))],
    ["no iat", () => forge(HS, without("iat"))],
    ["no reservation", () => forge(HS, without("reservation_id"))],
    ["another audience", () => forge(HS, { ...good(), aud: "other" })],
    ["another issuer", () => forge(HS, { ...good(), iss: "other" })],
    ["expired", () => forge(HS, { ...good(), iat: now() - 400, exp: now() - 100 })],
    ["from the future", () => forge(HS, { ...good(), iat: now() + 120, exp: now() + 300 })],
    ["not valid yet", () => forge(HS, { ...good(), nbf: now() + 120 })],
    ["a life of an hour", () => forge(HS, { ...good(), exp: now() + 3_600 })],
    ["an exp that is text", () => forge(HS, { ...good(), exp: "2099" })],
    ["ten kilobytes", () => forge(HS, { ...good(), filler: "x".repeat(10_000) })],
    ["a changed claim", () => forge(HS, good()).replace(/\.[^.]+\./, `.${encode({ ...good(), tenant_id: "tenant-2" })}.`)],
  ];
  it.each(hostile)("%s", async (_name, make) => {
    expect(await verifier().verify(`Bearer ${await make()}`)).toMatchObject({ ok: false, status: 401 });
    expect(await verifier().verify(await make())).toMatchObject({ ok: false, status: 401 });
  });

  it("a clock that is a minute off is forgiven", async () => {
    const late = forge(HS, { ...good(), iat: now() - 330, exp: now() - 30 });
    expect(await verifier().verify(late)).toMatchObject({ ok: true });
  });

  it("a replayed token", async () => {
    const one = verifier();
    const token = forge(HS, good());
    expect(await one.verify(token)).toMatchObject({ ok: true });
    expect(await one.verify(token)).toMatchObject({ ok: false, status: 401, reason: "the token was used before" });
    const race = forge(HS, good());
    const results = await Promise.all(Array.from({ length: 20 }, () => one.verify(race)));
    expect(results.filter(({ ok }) => ok)).toHaveLength(1);
  });

  it("the memory of used tokens is bounded, forgets only what has ended, and fails closed", async () => {
    const clock = movableClock();
    const bounded = createServiceVerifier({
      keys: [{ alg: "HS256", secret: SECRET }],
      issuer: ISSUER,
      audience: AUDIENCE,
      usedMax: 2,
      clock,
    });
    const signer = createServiceSigner({ alg: "HS256", secret: SECRET, issuer: ISSUER, audience: AUDIENCE, clock });
    const sign = () => signer.sign(CLAIMS);
    for (let i = 0; i < 2; i++) expect(await bounded.verify(await sign())).toMatchObject({ ok: true });
    expect(await bounded.verify(await sign())).toMatchObject({ ok: false, status: 503 });
    clock.move(361_000);
    expect(await bounded.verify(await sign())).toMatchObject({ ok: true });
  });
});

describe("the token stays where it belongs", () => {
  it("a receiver that echoes it does not get it into the store or the log", async () => {
    await using billing = await startBilling((call) => ({ status: 500, body: `you sent ${call.headers.authorization}` }));
    await using scene = sceneOf(billing);
    const given = request();
    await scene.client.finalize(given);
    const token = String(billing.calls[0]?.headers.authorization).replace("Bearer ", "");
    const entry = await scene.store.get(given.reservation_id);
    expect(entry?.reason).toContain("the receiver answered 500");
    expect(JSON.stringify([entry, scene.kept.lines])).not.toContain(token);
  });
});
