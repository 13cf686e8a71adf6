/**
 * Receivers for the sink tests: a real HTTP server that keeps what arrived, raw TCP servers that answer whatever they
 * like, and a canary that only counts connections.
 */
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { createAddressGuard } from "../../src/sink/address-guard.ts";
import type { Delivery, Sink } from "../../src/sink/sink.ts";
import { testContext, testDelivery } from "../../src/testing/sink-conformance.ts";

/** Lets 127.0.0.1 through as a self-hoster would, without making the sink trusted. */
export const loopbackGuard = createAddressGuard({ allow: ["127.0.0.0/8"] });

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface Listening extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  connections(): number;
}

/** An HTTP receiver; `answer` runs when the whole body is in. */
export async function httpReceiver(
  answer: (seen: Seen, ...args: Parameters<RequestListener>) => void = (_seen, _request, response) => response.end("ok"),
): Promise<Listening & { readonly seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => undefined);
    request.on("end", () => {
      const { method = "", url = "", headers, rawHeaders } = request;
      const one = { method, path: url, headers, rawHeaders, body: Buffer.concat(chunks) };
      seen.push(one);
      answer(one, request, response);
    });
  });
  return { ...(await listen(server)), seen };
}

/** A TCP receiver that sees raw bytes. */
export function rawReceiver(onConnection: (socket: Socket) => void): Promise<Listening> {
  return listen(createTcpServer((socket) => onConnection(socket.on("error", () => undefined))));
}

/** Answers the first bytes of each request with fixed text, then optionally closes. */
export function cannedReceiver(text: string | Buffer, close = true): Promise<Listening> {
  return rawReceiver((socket) => {
    socket.once("data", () => {
      socket.write(text);
      if (close) socket.end();
    });
  });
}

/** A port on which nobody listens. */
export async function deadPort(): Promise<number> {
  const listening = await rawReceiver(() => undefined);
  await listening[Symbol.asyncDispose]();
  return listening.port;
}

export async function listen(server: Server, scheme = "http"): Promise<Listening> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on("connection", (socket: Socket) => {
    connections++;
    sockets.add(socket.on("close", () => sockets.delete(socket)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${scheme}://127.0.0.1:${port}/`,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** One attempt with a context as a worker makes it. */
export async function send(sink: Sink, over: Partial<Delivery> = {}, timeoutMs = 5_000) {
  const context = testContext(timeoutMs);
  const startedMs = performance.now();
  try {
    const outcome = await sink.deliver(testDelivery(over), context);
    return { outcome, tookMs: performance.now() - startedMs };
  } finally {
    context[Symbol.dispose]();
  }
}
