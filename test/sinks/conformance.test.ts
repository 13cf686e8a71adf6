/** The public conformance suite on every sink of the house. */
import type { ServerResponse } from "node:http";
import { describe, it } from "vitest";
import { oneLine } from "../../src/message/one-line.ts";
import { functionSink } from "../../src/sink/function.ts";
import { httpSink } from "../../src/sink/http.ts";
import { notifySink, notifyText } from "../../src/sink/notify.ts";
import type { Sink } from "../../src/sink/sink.ts";
import { webhookSink } from "../../src/sink/webhook.ts";
import { type Received, type ReceiverMode, type SinkHarness, sinkConformance } from "../../src/testing/sink-conformance.ts";
import { generateSecret } from "../../src/webhook/secret.ts";
import { httpReceiver, loopbackGuard } from "./receiver.ts";

function overHttp(make: (url: string) => Sink): Pick<SinkHarness, "open"> {
  return {
    async open() {
      let mode: ReceiverMode = "accept";
      const receiver = await httpReceiver((_seen, request, response) => play(mode, response, () => request.socket.destroy()));
      const sink = make(receiver.url);
      return {
        sink,
        behave: (next) => {
          mode = next;
        },
        received: () => receiver.seen.map(({ body, headers }) => ({ body, idempotencyKey: String(headers["idempotency-key"]) })),
        async close() {
          await sink.close?.();
          await receiver[Symbol.asyncDispose]();
        },
      };
    },
  };
}

function play(mode: ReceiverMode, response: ServerResponse, destroy: () => void): void {
  if (mode === "accept") response.end("ok");
  if (mode === "break") destroy();
}

function inProcess(handle: (mode: ReceiverMode) => unknown): SinkHarness {
  return {
    async open() {
      let mode: ReceiverMode = "accept";
      const received: Received[] = [];
      const sink = functionSink((_payload, delivery) => {
        received.push({ body: delivery.payload, idempotencyKey: delivery.idempotencyKey });
        return handle(mode);
      });
      return {
        sink,
        behave: (next) => {
          mode = next;
        },
        received: () => received,
        close: async () => undefined,
      };
    },
  };
}

function logHarness(): SinkHarness {
  return {
    modes: ["accept", "break"],
    bodyOf: ({ topic, id, payload }) => oneLine(`notify ${topic} ${id}: ${payload}`, 4_000),
    async open() {
      let broken = false;
      const received: Received[] = [];
      const log = (line: string) => {
        if (broken) throw new Error("the log is full");
        received.push({ body: line, idempotencyKey: null });
      };
      return {
        sink: notifySink({}, { log }),
        behave: (mode) => {
          broken = mode === "break";
        },
        received: () => received,
        close: async () => undefined,
      };
    },
  };
}

function breaks(): never {
  throw new Error("broken");
}

function suite(name: string, harness: SinkHarness): void {
  describe(name, () => {
    for (const { name: what, run } of sinkConformance(name, harness)) it(what, run);
  });
}

const secrets = [generateSecret()];
suite(
  "http",
  overHttp((url) => httpSink({ url }, { guard: loopbackGuard })),
);
suite(
  "webhook",
  overHttp((url) => webhookSink({ url, secrets }, { guard: loopbackGuard })),
);
suite("notify with a url", {
  ...overHttp((url) => notifySink({ url }, { guard: loopbackGuard, log: () => undefined })),
  bodyOf: (delivery) => JSON.stringify({ text: notifyText(delivery) }),
});
suite("notify without a url", logHarness());
suite(
  "function (async)",
  inProcess(async (mode) => {
    if (mode === "break") throw new Error("broken");
    if (mode === "hang") await new Promise(() => undefined);
  }),
);
suite("function (sync)", { ...inProcess((mode) => (mode === "break" ? breaks() : undefined)), modes: ["accept", "break"] });
