/**
 * A receiver for the fault suites: keeps what arrived (key, hash of the body, attempt, headers), has one effect per key as an
 * idempotent receiver does, and answers by a script: status, delay, reset after it acted, or nothing at all. What it refuses has no effect.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { freePort } from "./free-port.ts";

export interface Arrival {
  readonly key: string;
  readonly id: string;
  readonly topic: string;
  readonly attempt: number;
  readonly sha256: string;
  readonly body: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly atMs: number;
  /** The one of its key that had the effect: the first that was not refused. */
  readonly effect: boolean;
}

export type Answer =
  | {
      readonly status: number;
      readonly afterMs?: number;
      /** Instead of a time. */
      readonly after?: Promise<unknown>;
      readonly headers?: Record<string, string>;
    }
  /** Acts, then resets the connection before any byte of an answer. */
  | "reset"
  /** Acts, and never answers. */
  | "hang"
  /** This status at once, then a byte of body now and then, for ever. */
  | { readonly drip: number };

export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly arrivals: Arrival[];
  /** Keys that had their effect: a repeat of a key has none, and neither has a request that was answered with anything but success. */
  readonly effects: ReadonlySet<string>;
  of(idOrKey: string): Arrival[];
  /** What this key's next requests are answered with; afterwards the default again. */
  script(key: string, answers: readonly Answer[]): void;
  /** The answer to whatever has no script. */
  default(answer: Answer | ((arrival: Arrival) => Answer)): void;
  /** Answers every request that hangs. */
  release(status?: number): void;
  /** Refuses connections, and breaks those that are open. */
  down(): Promise<void>;
  up(): Promise<void>;
  /** Requests that are being answered, and the most there ever were. */
  readonly open: number;
  readonly openMax: number;
}

/** Whether the receiver acts before it answers like this: a refusal has no effect, a broken connection or silence may hide one. */
function acts(answer: Answer): boolean {
  if (answer === "reset" || answer === "hang") return true;
  const status = "drip" in answer ? answer.drip : answer.status;
  return status >= 200 && status < 300;
}

export const sha256 = (text: string | Buffer): string => createHash("sha256").update(text).digest("hex");

export async function startReceiver(first: Answer | ((arrival: Arrival) => Answer) = { status: 200 }): Promise<Receiver> {
  const arrivals: Arrival[] = [];
  const effects = new Set<string>();
  const scripts = new Map<string, Answer[]>();
  const hanging = new Set<ServerResponse>();
  const sockets = new Set<Socket>();
  let fallback = first;
  let open = 0;
  let openMax = 0;

  const respond = (response: ServerResponse, what: Answer) => {
    if (what === "reset") return void response.socket?.resetAndDestroy();
    if (what === "hang") return void hanging.add(response);
    if ("drip" in what) {
      response.writeHead(what.drip, { "content-type": "text/plain" });
      const timer = setInterval(() => response.write("."), 200);
      return void response.on("close", () => clearInterval(timer));
    }
    const { status, afterMs = 0, after, headers = {} } = what;
    const send = () => response.writeHead(status, headers).end(status === 204 ? undefined : "ok");
    if (after !== undefined) void after.then(send);
    else if (afterMs > 0) setTimeout(send, afterMs);
    else send();
  };

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    openMax = Math.max(openMax, ++open);
    response.on("close", () => {
      open--;
      hanging.delete(response);
    });
    request.on("error", () => undefined);
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { headers, url = "/" } = request;
      const key = String(headers["idempotency-key"] ?? "");
      const body = Buffer.concat(chunks);
      const arrival = {
        key,
        id: String(headers["makegood-message-id"] ?? ""),
        topic: String(headers["makegood-topic"] ?? ""),
        attempt: Number(headers["makegood-attempt"]),
        sha256: sha256(body),
        body: body.toString(),
        path: url,
        headers,
        atMs: performance.now(),
        effect: false,
      };
      arrivals.push(arrival);
      const answer = scripts.get(key)?.shift() ?? (typeof fallback === "function" ? fallback(arrival) : fallback);
      const effect = acts(answer) && !effects.has(key);
      if (effect) effects.add(key);
      arrival.effect = effect;
      respond(response, answer);
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  server.keepAliveTimeout = 60_000;
  const listen = (port: number) => once(server.listen(port, "127.0.0.1"), "listening");
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  const port = await freePort();
  await listen(port);

  return {
    url: `http://127.0.0.1:${port}/`,
    port,
    arrivals,
    effects,
    of: (idOrKey) => arrivals.filter(({ id, key }) => id === idOrKey || key === idOrKey),
    script(key, answers) {
      scripts.set(key, [...answers]);
    },
    default(next) {
      fallback = next;
    },
    release(status = 200) {
      for (const response of [...hanging]) respond(response, { status });
      hanging.clear();
    },
    down: close,
    up: async () => void (await listen(port)),
    get open() {
      return open;
    },
    get openMax() {
      return openMax;
    },
    async [Symbol.asyncDispose]() {
      if (server.listening) await close();
    },
  };
}
