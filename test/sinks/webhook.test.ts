/** The webhook sink: what it sends is verified as a receiver does it, with the door `makegood/webhook`. */
import { expect, it } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { webhookSink } from "../../src/sink/webhook.ts";
import { generateSecret, verifyWebhook } from "../../src/webhook/index.ts";
import { httpReceiver, loopbackGuard, type Seen, send } from "./receiver.ts";

const NOW_MS = 1_700_000_000_000;
const NOW_S = NOW_MS / 1_000;
const BODY = '{ "a": 1,  "b": "é" }';
const [SECRET, OTHER] = [generateSecret(), generateSecret()];

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
  const verify = ({ headers, body }: Seen) => verifyWebhook({ headers, body, secrets: SECRET, nowMs: NOW_MS });
  expect(verify(first)).toEqual({ ok: true, id: "msg_7", atMs: NOW_MS, secret: 0 });
  expect(verify(second)).toEqual({ ok: true, id: "msg_7", atMs: (NOW_S + 60) * 1_000, secret: 0 });
  expect(verify({ ...first, body: Buffer.from(JSON.stringify(JSON.parse(BODY))) })).toMatchObject({ reason: "signature_wrong" });
  expect(verify({ ...first, headers: { ...first.headers, "webhook-id": "msg_8" } })).toMatchObject({ reason: "signature_wrong" });
  expect((await send(sink, { id: "a.b" })).outcome).toMatchObject({ kind: "reject", code: "request_invalid" });
  await sink.close?.();
  await receiver[Symbol.asyncDispose]();
});

it("signs with every secret while they are changed: a receiver with either verifies", async () => {
  const receiver = await httpReceiver();
  const sink = webhookSink({ url: receiver.url, secrets: [OTHER, SECRET] }, { guard: loopbackGuard });
  await send(sink, { id: "msg_7", payload: BODY });
  const [{ headers, body }] = receiver.seen as [Seen];
  for (const secrets of [SECRET, OTHER, [OTHER, SECRET]]) expect(verifyWebhook({ headers, body, secrets }).ok).toBe(true);
  expect(verifyWebhook({ headers, body, secrets: generateSecret() })).toMatchObject({ reason: "signature_wrong" });
  await sink.close?.();
  await receiver[Symbol.asyncDispose]();
});

it("without a secret nothing is sent", async () => {
  const receiver = await httpReceiver();
  const sink = webhookSink({ url: receiver.url, secrets: [] }, { guard: loopbackGuard });
  expect((await send(sink, { id: "msg_7" })).outcome).toMatchObject({ kind: "unserved", code: "signing_failed" });
  expect(receiver.seen).toEqual([]);
  await sink.close?.();
  await receiver[Symbol.asyncDispose]();
});
