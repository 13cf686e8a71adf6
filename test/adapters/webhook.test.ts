/**
 * Signing and verifying beside the `standardwebhooks` package: each accepts what the other signs, and both give the same answer to what was
 * changed on the way. Where they differ, it is named here, and ours is the one that refuses.
 */
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { createMakegood, topic } from "../../src/index.ts";
import { createMemoryStore } from "../../src/testing/index.ts";
import { generateSecret, signWebhook, verifyWebhook } from "../../src/webhook/index.ts";
import { httpReceiver } from "../sinks/receiver.ts";

const SECRET = generateSecret();
const OTHER = generateSecret();
const BODIES = ["{}", '{ "a": 1,  "b": "é 💶" }', "", "not json", '{"n":9007199254740993,"z":-0}', "x".repeat(100_000)];
type Headers3 = Record<string, string>;

const nowS = (): number => Math.floor(Date.now() / 1_000);

function theirs(headers: Headers3, body: string, secret: string): boolean {
  try {
    new Webhook(secret).verify(body, headers, { jsonParse: false });
    return true;
  } catch {
    return false;
  }
}

const ours = (headers: Headers3, body: string, secrets: string | string[]): boolean =>
  verifyWebhook({ headers, body, secrets }).ok;

const signedByUs = (body: string, secrets: string | string[] = SECRET, atMs?: number): Headers3 => ({
  ...signWebhook({ id: "msg_1", body, secrets, atMs }),
});

function signedByThem(body: string, secret = SECRET, id = "msg_1", timestamp = nowS()): Headers3 {
  const signature = new Webhook(secret).sign(id, new Date(timestamp * 1_000), body);
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": signature };
}

describe("beside the package standardwebhooks", () => {
  it("each makes the other's signature and accepts it", () => {
    for (const body of BODIES) {
      const at = nowS();
      expect(signedByUs(body, SECRET, at * 1_000)).toEqual(signedByThem(body, SECRET, "msg_1", at));
      expect([theirs(signedByUs(body), body, SECRET), ours(signedByThem(body), body, SECRET)]).toEqual([true, true]);
    }
  });

  it("accepts what our webhook sink sends, as text of the request that arrived", async () => {
    const receiver = await httpReceiver();
    const mg = await createMakegood({
      store: createMemoryStore(),
      topics: [topic<unknown>("shop/orders", { sink: { kind: "webhook", url: receiver.url, secrets: [OTHER, SECRET] } })],
    });
    for (const n of [1, 2, 3]) await mg.enqueue("shop/orders", { n, text: "é 💶" });
    mg.work();
    while (receiver.seen.length < 3) await new Promise((resolve) => setImmediate(resolve));
    await mg.close();
    for (const { headers, body } of receiver.seen) {
      for (const secret of [SECRET, OTHER]) {
        expect(theirs(headers as Headers3, body.toString(), secret)).toBe(true);
        expect(verifyWebhook({ headers, body, secrets: secret })).toMatchObject({ ok: true, id: headers["makegood-message-id"] });
      }
      expect(theirs(headers as Headers3, `${body} `, SECRET)).toBe(false);
    }
    await receiver[Symbol.asyncDispose]();
  });

  it("gives the same answer to 4,000 requests that were changed by chance", () => {
    let seed = 7;
    const below = (n: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * n);
    };
    const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
    const flip = (text: string): string => {
      const at = below(text.length);
      return text.slice(0, at) + pick(["A", "0", "=", "v", "x"]) + text.slice(at + 1);
    };
    const signature = "webhook-signature";
    const changes: ((headers: Headers3) => unknown)[] = [
      () => undefined,
      (headers) => Object.assign(headers, { [signature]: flip(headers[signature] as string) }),
      (headers) => Object.assign(headers, { [signature]: headers[signature]?.slice(0, -below(50)) }),
      (headers) => Object.assign(headers, { [signature]: `v2,x ${headers[signature]}` }),
      (headers) => Object.assign(headers, { [signature]: `${headers[signature]},` }),
      (headers) => Object.assign(headers, { [signature]: headers[signature]?.replace(" ", "  ") }),
      (headers) =>
        Object.assign(headers, { [signature]: headers[signature]?.replaceAll("v1,", pick(["v1", "v1a,", "V1,", " v1,"])) }),
      (headers) => Object.assign(headers, { "webhook-id": pick(["msg_2", "", "msg_1 ", "MSG_1"]) }),
      (headers) => Object.assign(headers, { "webhook-timestamp": String(nowS() + pick([-100, -1, 1, 100, 400, -400])) }),
      (headers) => delete headers[pick(["webhook-id", "webhook-timestamp", signature])],
      (headers) =>
        Object.assign(headers, { [pick(["WEBHOOK-ID", "Webhook-Id"])]: headers["webhook-id"] }) && delete headers["webhook-id"],
    ];
    const answers = { true: 0, false: 0 };
    for (let i = 0; i < 4_000; i++) {
      const body = pick(BODIES);
      const headers = pick([
        () => signedByUs(body, [OTHER, SECRET]),
        () => signedByUs(body),
        () => signedByThem(body),
        () => signedByThem(body, SECRET, "msg_1", nowS() + pick([-290, 290, -310, 310])),
      ])();
      pick(changes)(headers);
      const arrived = below(8) === 0 ? `${body} ` : body;
      const secret = pick([SECRET, SECRET, OTHER]);
      const answer = theirs(headers, arrived, secret);
      expect([headers, arrived.length, ours(headers, arrived, secret)]).toEqual([headers, arrived.length, answer]);
      answers[`${answer}`]++;
    }
    expect(Math.min(answers.true, answers.false), "both answers occur").toBeGreaterThan(500);
  });

  it.each([
    ["an id with a dot", signedByThem("{}", SECRET, "msg.1")],
    ["a time that only begins with a number", { ...signedByThem("{}"), "webhook-timestamp": `${nowS()}x` }],
    ["a time with a zero in front", { ...signedByThem("{}"), "webhook-timestamp": `0${nowS()}` }],
    [
      "a signature behind 32 others",
      { ...signedByThem("{}"), "webhook-signature": `${"v1,x ".repeat(32)}${signedByThem("{}")["webhook-signature"]}` },
    ],
  ])("refuses, where the package does not: %s", (_name, headers) => {
    expect([theirs(headers, "{}", SECRET), ours(headers, "{}", SECRET)]).toEqual([true, false]);
  });

  it("refuses, where the package does not: a secret of fewer than 24 bytes, or without whsec_", () => {
    for (const secret of [`whsec_${Buffer.alloc(16, 7).toString("base64")}`, Buffer.alloc(32, 7).toString("base64")]) {
      const headers = signedByThem("{}", secret);
      expect(theirs(headers, "{}", secret)).toBe(true);
      expect(() => ours(headers, "{}", secret)).toThrow(expect.objectContaining({ code: "invalid_config" }));
    }
  });
});
