/** Attacks 8 and 9: signatures of Standard Webhooks 1.0.0, checked against a verification written here by hand. */
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkSecret, generateSecret, type SignedRequest, signWebhook, verifyWebhook } from "../../../src/webhook/index.ts";

const NOW_MS = 1_700_000_000_000;
const NOW_S = NOW_MS / 1_000;
const BODY = '{ "a": 1,  "b": "é" }';
const SECRET = generateSecret();
const OTHER = generateSecret();

/** The oracle: the specification's own words, without our code. */
function oracle(id: string, timestamp: string, body: string, secret: string): string {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`, "utf8").digest("base64")}`;
}

function signed(over: Record<string, string> = {}, secrets: readonly string[] = [SECRET]) {
  return { ...signWebhook({ id: "msg_1", body: BODY, secrets, atMs: NOW_MS }), ...over };
}

const verify = (request: Partial<SignedRequest> = {}) =>
  verifyWebhook({ headers: signed(), body: BODY, secrets: [SECRET], nowMs: NOW_MS, ...request });
const refused = (reason: string) => ({ ok: false, reason, detail: expect.any(String) });

describe("signing", () => {
  it("makes the signature of the specification's example", () => {
    // The example of the reference libraries (id, time, secret, body → signature).
    const secrets = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    expect(signWebhook({ id, body: '{"test": 2432232314}', secrets, atMs: 1_614_265_330_000 })).toEqual({
      "webhook-id": id,
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  it("agrees with the oracle, as text and as bytes of any kind", () => {
    const bytes = new TextEncoder().encode(BODY);
    for (const body of [BODY, Buffer.from(BODY), bytes, bytes.slice().buffer]) {
      const { "webhook-signature": signature } = signWebhook({ id: "msg_1", body, secrets: SECRET, atMs: NOW_MS + 999 });
      expect(signature).toBe(oracle("msg_1", String(NOW_S), BODY, SECRET));
    }
  });

  it("attack 8: an id with a dot is not signed", () => {
    expect(() => signWebhook({ id: "a.1", body: BODY, secrets: SECRET })).toThrow(/dot/);
  });
});

describe("attack 8: verification", () => {
  const genuine = { ok: true, id: "msg_1", atMs: NOW_MS, secret: 0 };

  it("accepts what was signed, in any shape and spelling of the headers", () => {
    const upper = Object.fromEntries(Object.entries(signed()).map(([name, value]) => [name.toUpperCase(), value]));
    const lists = Object.fromEntries(Object.entries(signed()).map(([name, value]) => [name, [value]]));
    // Not an instance of this realm's class: another library's Headers.
    const alike = { get: (name: string) => new Headers({ ...signed() }).get(name) };
    for (const headers of [signed(), upper, lists, new Headers({ ...signed() }), alike]) {
      expect(verify({ headers })).toEqual(genuine);
    }
    expect(verify({ body: Buffer.from(BODY) })).toEqual(genuine);
    expect(verify({ body: new TextEncoder().encode(BODY).slice().buffer })).toEqual(genuine);
    expect(verify({ secrets: SECRET })).toEqual(genuine);
  });

  it("looks past signatures of other versions, and at headers that were joined", () => {
    const own = signed()["webhook-signature"];
    expect(verify({ headers: signed({ "webhook-signature": `v1a,xyz v2,abc ${own}` }) })).toEqual(genuine);
    const twice = new Headers({ ...signed({ "webhook-signature": oracle("msg_1", String(NOW_S), BODY, OTHER) }) });
    twice.append("webhook-signature", own);
    expect(verify({ headers: twice })).toEqual(genuine);
  });

  it("signs and verifies with the clock when no time is given", () => {
    const headers = signWebhook({ id: "msg_1", body: BODY, secrets: SECRET });
    expect(verifyWebhook({ headers: { ...headers }, body: BODY, secrets: SECRET })).toMatchObject({ ok: true, id: "msg_1" });
  });

  const own = signed()["webhook-signature"];
  it.each([
    ["forged", { "webhook-signature": oracle("msg_1", String(NOW_S), BODY, OTHER) }, "signature_wrong"],
    ["truncated", { "webhook-signature": own.slice(0, -8) }, "signature_wrong"],
    ["lengthened", { "webhook-signature": `${own.slice(0, -1)}AAAA` }, "signature_wrong"],
    ["in another alphabet", { "webhook-signature": own.replace(/=$/, "") }, "signature_wrong"],
    ["without its version", { "webhook-signature": own.slice(3) }, "signature_wrong"],
    ["of another version", { "webhook-signature": own.replace("v1,", "v2,") }, "signature_wrong"],
    ["empty", { "webhook-signature": "" }, "header_missing"],
    ["empty after its version", { "webhook-signature": "v1," }, "signature_wrong"],
    ["behind more than are read", { "webhook-signature": `${"v1,AAAA ".repeat(32)}${own}` }, "signature_wrong"],
    ["with another id", { "webhook-id": "msg_2" }, "signature_wrong"],
    ["with another time", { "webhook-timestamp": String(NOW_S + 1) }, "signature_wrong"],
    ["with id and time swapped", { "webhook-id": String(NOW_S), "webhook-timestamp": "msg_1" }, "header_malformed"],
    ["with a dot in its id", { "webhook-id": `msg_1.${NOW_S}`, "webhook-timestamp": "0" }, "header_malformed"],
    ["with a time that is not a number", { "webhook-timestamp": `${NOW_S}x` }, "header_malformed"],
    ["with a time in exponent form", { "webhook-timestamp": "1.7e9" }, "header_malformed"],
    ["with a negative time", { "webhook-timestamp": `-${NOW_S}` }, "header_malformed"],
    ["with a zero in front of its time", { "webhook-timestamp": `0${NOW_S}` }, "signature_wrong"],
  ])("refuses a signature %s", (_name, over, reason) => {
    expect(verify({ headers: signed(over) })).toEqual(refused(reason));
  });

  it.each(["webhook-id", "webhook-timestamp", "webhook-signature"])("refuses when %s is missing or repeated", (name) => {
    const { [name]: value = "", ...rest } = signed() as Record<string, string>;
    expect(verify({ headers: rest })).toEqual({ ...refused("header_missing"), detail: `${name} is missing` });
    expect(verify({ headers: new Headers(rest) })).toEqual(refused("header_missing"));
    expect(verify({ headers: { ...rest, [name]: [value, value] } })).toEqual(refused("header_malformed"));
    expect(verify({ headers: { ...rest, [name]: value, [name.toUpperCase()]: value } })).toEqual(refused("header_malformed"));
  });

  it("holds the tolerance of five minutes, past and future, or another one", () => {
    for (const offset of [-300_000, 0, 300_000]) expect(verify({ nowMs: NOW_MS + offset })).toEqual(genuine);
    for (const offset of [300_001, 86_400_000]) expect(verify({ nowMs: NOW_MS + offset })).toEqual(refused("too_old"));
    for (const offset of [-300_001, -86_400_000]) expect(verify({ nowMs: NOW_MS + offset })).toEqual(refused("too_new"));
    expect(verify({ nowMs: NOW_MS + 10_000, toleranceMs: 5_000 })).toEqual(refused("too_old"));
    expect(verify({ nowMs: NOW_MS - 10_000, toleranceMs: 5_000 })).toEqual(refused("too_new"));
    expect(verify({ nowMs: NOW_MS + 86_400_000, toleranceMs: Number.POSITIVE_INFINITY })).toEqual(genuine);
    expect(verify({ nowMs: Number.NaN }).ok).toBe(false);
    expect(verify({ toleranceMs: Number.NaN }).ok).toBe(false);
  });

  it("refuses a body that was parsed and written again, or cut", () => {
    for (const body of [JSON.stringify(JSON.parse(BODY)), BODY.slice(0, -1), `${BODY}\n`, ""]) {
      expect(verify({ body })).toEqual(refused("signature_wrong"));
    }
  });

  it("one changed byte anywhere in id, time, body or signature is noticed", () => {
    const changed = fc.tuple(fc.constantFrom("id", "time", "body", "signature"), fc.nat(), fc.integer({ min: 1, max: 255 }));
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), changed, (body, [what, at, by]) => {
        const headers: Record<string, string> = { ...signWebhook({ id: "msg_1", body, secrets: SECRET, atMs: NOW_MS }) };
        expect(verify({ headers, body }).ok).toBe(true);
        const other = (text: string): string => {
          const i = at % text.length;
          return text.slice(0, i) + (text[i] === "0" ? "1" : "0") + text.slice(i + 1);
        };
        if (what === "body") {
          const bytes = body.slice();
          bytes[at % bytes.length] = (bytes[at % bytes.length] as number) ^ by;
          return !verify({ headers, body: bytes }).ok;
        }
        const name = { id: "webhook-id", time: "webhook-timestamp", signature: "webhook-signature" }[what] as string;
        headers[name] = other(headers[name] as string);
        return !verify({ headers, body, toleranceMs: Number.POSITIVE_INFINITY }).ok;
      }),
    );
  });

  it("says that a parsed body cannot be verified", () => {
    for (const body of [JSON.parse(BODY), undefined, null, 7]) {
      expect(() => verify({ body: body as string })).toThrow(expect.objectContaining({ code: "invalid_payload" }));
    }
  });
});

describe("attack 9: secrets and rotation", () => {
  it("signs with both in the overlap; a receiver with either verifies; the old one ends when it is removed", () => {
    const overlap = signed({}, [SECRET, OTHER]);
    expect(overlap["webhook-signature"].split(" ")).toEqual([
      oracle("msg_1", String(NOW_S), BODY, SECRET),
      oracle("msg_1", String(NOW_S), BODY, OTHER),
    ]);
    expect(verify({ headers: overlap, secrets: OTHER })).toMatchObject({ ok: true, secret: 0 });
    expect(verify({ headers: overlap, secrets: SECRET })).toMatchObject({ ok: true, secret: 0 });
    expect(verify({ secrets: OTHER })).toEqual(refused("signature_wrong"));
  });

  it("names the place of the first secret that fits: the last one may go when nothing needs it any more", () => {
    expect(verify({ secrets: [OTHER, SECRET] })).toMatchObject({ ok: true, secret: 1 });
    expect(verify({ headers: signed({}, [SECRET, OTHER]), secrets: [OTHER, SECRET] })).toMatchObject({ ok: true, secret: 0 });
  });

  it("generated secrets hold 32 random bytes and pass the check", () => {
    const many = new Set(Array.from({ length: 100 }, () => generateSecret()));
    expect(many.size).toBe(100);
    for (const secret of many) {
      expect(checkSecret(secret)).toBeNull();
      expect(Buffer.from(secret.slice(6), "base64")).toHaveLength(32);
    }
  });

  it.each([
    ["24 bytes", 24, true],
    ["64 bytes", 64, true],
    ["23 bytes", 23, false],
    ["65 bytes", 65, false],
    ["nothing", 0, false],
  ])("a secret of %s", (_name, size, good) => {
    expect(checkSecret(`whsec_${Buffer.alloc(size, 7).toString("base64")}`) === null).toBe(good);
  });

  it.each([
    "",
    "whsec_",
    "secret",
    Buffer.alloc(32).toString("base64"),
    "whsec_not base64 at all but long enough!!",
    "whsec_****************************************",
  ])("is refused without being quoted, whatever the request is: %j", (secret) => {
    const reason = checkSecret(secret);
    expect(reason).not.toBeNull();
    if (secret.length > 7) expect(reason).not.toContain(secret.slice(6));
    const wrong = expect.objectContaining({ code: "invalid_config", message: reason });
    expect(() => verify({ secrets: secret })).toThrow(wrong);
    expect(() => verify({ secrets: [SECRET, secret], headers: {} })).toThrow(wrong);
    expect(() => signWebhook({ id: "msg_1", body: BODY, secrets: [secret] })).toThrow(wrong);
  });

  it("a receiver without a secret is told so and accepts nothing", () => {
    for (const secrets of [[], undefined, [undefined]] as never[]) {
      expect(() => verify({ secrets })).toThrow(expect.objectContaining({ code: "invalid_config" }));
    }
  });
});
