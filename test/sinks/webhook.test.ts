/** Attacks 8 and 9: signatures of Standard Webhooks 1.0.0, checked against a verification written here by hand. */
import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { checkSecret, generateSecret, signWebhook, verifyWebhook } from "../../src/sink/sign-webhook.ts";
import { webhookSink } from "../../src/sink/webhook.ts";
import { httpReceiver, loopbackGuard, type Seen, send } from "./receiver.ts";

const NOW_MS = 1_700_000_000_000;
const NOW_S = NOW_MS / 1_000;
const BODY = '{ "a": 1,  "b": "é" }';

/** The oracle: the specification's own words, without our code. */
function oracle(id: string, timestamp: string, body: string, secret: string): string {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`, "utf8").digest("base64")}`;
}

function signed(over: Record<string, string> = {}, secrets: readonly string[] = [SECRET]) {
  return {
    "webhook-id": "msg_1",
    "webhook-timestamp": String(NOW_S),
    "webhook-signature": signWebhook("msg_1", NOW_S, BODY, secrets),
    ...over,
  };
}

const SECRET = generateSecret();
const OTHER = generateSecret();

describe("signing", () => {
  it("makes the signature of the specification's example", () => {
    // The example of the reference libraries (id, time, secret, body → signature).
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const body = '{"test": 2432232314}';
    expect(signWebhook("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body, [secret])).toBe(
      "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    );
  });

  it("agrees with the oracle, as text and as bytes", () => {
    expect(signWebhook("msg_1", NOW_S, BODY, [SECRET])).toBe(oracle("msg_1", String(NOW_S), BODY, SECRET));
    expect(signWebhook("msg_1", NOW_S, Buffer.from(BODY), [SECRET])).toBe(oracle("msg_1", String(NOW_S), BODY, SECRET));
  });

  it("attack 8: an id with a dot is not signed", () => {
    expect(() => signWebhook("a.1", NOW_S, BODY, [SECRET])).toThrow(/dot/);
  });
});

describe("attack 8: verification", () => {
  const verify = (headers: Record<string, string>, body: string | Uint8Array = BODY, nowMs = NOW_MS) =>
    verifyWebhook(headers, body, [SECRET], nowMs);

  it("accepts what was signed, in any spelling of the headers", () => {
    expect(verify(signed())).toBe(true);
    expect(verify(signed(), Buffer.from(BODY))).toBe(true);
    expect(verifyWebhook(new Headers(signed()), BODY, SECRET, NOW_MS)).toBe(true);
    const upper = Object.fromEntries(Object.entries(signed()).map(([name, value]) => [name.toUpperCase(), value]));
    expect(verify(upper)).toBe(true);
    expect(verify(signed({ "webhook-signature": `v1a,xyz v2,abc ${signed()["webhook-signature"]}` }))).toBe(true);
  });

  it.each([
    ["forged", signed({ "webhook-signature": oracle("msg_1", String(NOW_S), BODY, OTHER) })],
    ["truncated", signed({ "webhook-signature": signed()["webhook-signature"].slice(0, -8) })],
    ["lengthened", signed({ "webhook-signature": `${signed()["webhook-signature"].slice(0, -1)}AAAA` })],
    ["without its version", signed({ "webhook-signature": signed()["webhook-signature"].slice(3) })],
    ["of another version", signed({ "webhook-signature": signed()["webhook-signature"].replace("v1,", "v2,") })],
    ["empty", signed({ "webhook-signature": "" })],
    ["empty after its version", signed({ "webhook-signature": "v1," })],
    ["with another id", signed({ "webhook-id": "msg_2" })],
    ["with another time", signed({ "webhook-timestamp": String(NOW_S + 1) })],
    ["with id and time swapped", signed({ "webhook-id": String(NOW_S), "webhook-timestamp": "msg_1" })],
    ["with a dot in its id", signed({ "webhook-id": `msg_1.${NOW_S}`, "webhook-timestamp": "0" })],
    ["with a time that is not a number", signed({ "webhook-timestamp": `${NOW_S}x` })],
    ["with a time in exponent form", signed({ "webhook-timestamp": "1.7e9" })],
    ["with a negative time", signed({ "webhook-timestamp": `-${NOW_S}` })],
  ])("refuses a signature %s", (_name, headers) => {
    expect(verify(headers)).toBe(false);
  });

  it.each(["webhook-id", "webhook-timestamp", "webhook-signature"])("refuses when %s is missing or repeated", (name) => {
    const { [name]: _gone, ...rest } = signed() as Record<string, string>;
    expect(verify(rest)).toBe(false);
    expect(verifyWebhook({ ...rest, [name]: [signed()["webhook-id"], "x"] }, BODY, SECRET, NOW_MS)).toBe(false);
  });

  it("holds the tolerance of five minutes, past and future", () => {
    for (const offset of [-300_000, 0, 300_000]) expect(verify(signed(), BODY, NOW_MS + offset)).toBe(true);
    for (const offset of [-301_000, 301_000, 86_400_000]) expect(verify(signed(), BODY, NOW_MS + offset)).toBe(false);
    expect(verify(signed(), BODY, Number.NaN)).toBe(false);
    expect(verifyWebhook(signed(), BODY, SECRET, NOW_MS, Number.NaN)).toBe(false);
    expect(verifyWebhook(signed(), BODY, SECRET, NOW_MS + 10_000, 5_000)).toBe(false);
  });

  it("refuses a body that was parsed and written again, or cut", () => {
    expect(verify(signed(), JSON.stringify(JSON.parse(BODY)))).toBe(false);
    expect(verify(signed(), BODY.slice(0, -1))).toBe(false);
    expect(verify(signed(), `${BODY}\n`)).toBe(false);
  });

  it("signs the bytes that are sent, with the id of the message and the time of the attempt", async () => {
    const receiver = await httpReceiver();
    let wallMs = NOW_MS + 999;
    const clock = { ...systemClock, wallMs: () => wallMs };
    const sink = webhookSink({ url: receiver.url, secrets: [SECRET] }, { guard: loopbackGuard, clock });
    for (const attempt of [1, 2]) {
      await send(sink, { id: "msg_7", payload: BODY, attempt });
      wallMs += 60_000;
    }
    const [first, second] = receiver.seen as [Seen, Seen];
    expect(first.headers["webhook-id"]).toBe("msg_7");
    expect(second.headers["webhook-id"]).toBe("msg_7");
    expect(first.headers["webhook-timestamp"]).toBe(String(NOW_S));
    expect(second.headers["webhook-timestamp"]).toBe(String(NOW_S + 60));
    for (const { headers, body } of [first, second]) {
      const timestamp = String(headers["webhook-timestamp"]);
      expect(headers["webhook-signature"]).toBe(oracle("msg_7", timestamp, body.toString(), SECRET));
      expect(verifyWebhook(headers, body, [SECRET], Number(timestamp) * 1_000)).toBe(true);
    }
    expect((await send(sink, { id: "a.b" })).outcome).toMatchObject({ kind: "reject", code: "request_invalid" });
    await sink.close?.();
    await receiver[Symbol.asyncDispose]();
  });
});

describe("attack 9: secrets and rotation", () => {
  it("signs with both in the overlap; a receiver with either verifies; the old one ends when it is removed", () => {
    const overlap = signed({}, [SECRET, OTHER]);
    expect(overlap["webhook-signature"].split(" ")).toEqual([
      oracle("msg_1", String(NOW_S), BODY, SECRET),
      oracle("msg_1", String(NOW_S), BODY, OTHER),
    ]);
    expect(verifyWebhook(overlap, BODY, OTHER, NOW_MS)).toBe(true);
    expect(verifyWebhook(overlap, BODY, SECRET, NOW_MS)).toBe(true);
    expect(verifyWebhook(signed({}, [SECRET]), BODY, OTHER, NOW_MS)).toBe(false);
    expect(verifyWebhook(signed({}, [OTHER]), BODY, [SECRET, OTHER], NOW_MS)).toBe(true);
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
  ])("is refused without being quoted: %j", (secret) => {
    const reason = checkSecret(secret);
    expect(reason).not.toBeNull();
    if (secret.length > 7) expect(reason).not.toContain(secret.slice(6));
    expect(() => verifyWebhook(signed(), BODY, secret, NOW_MS)).toThrow();
  });
});
