/** The socket in front of the app: bounded waits, problem+json also for what is no request, a close that lets answers finish. */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { MakegoodError } from "../message/errors.ts";
import { type Clock, sleep } from "../platform/clock.ts";
import { type App, SAFE_HEADERS } from "./app.ts";
import { type ApiRequest, problem, type Reply } from "./http.ts";

export type Timeouts = { readonly headersTimeoutMs?: number | undefined; readonly requestTimeoutMs?: number | undefined };
/** How the variables begin that say where it listens: `MAKEGOOD_`. */
type Said = { readonly variables?: string | undefined };

/** Longer than the idle limit of common load balancers, so that they and not we end an idle connection. */
const KEEP_ALIVE_MS = 65_000;

export async function listen(reply: App["reply"], host: string, port: number, clock: Clock, limits: Timeouts & Said = {}) {
  const { headersTimeoutMs: headersTimeout = 15_000, requestTimeoutMs: requestTimeout = 60_000 } = limits;
  const connectionsCheckingInterval = Math.min(1_000, headersTimeout);
  const timeouts = { headersTimeout, requestTimeout, connectionsCheckingInterval, keepAliveTimeout: KEEP_ALIVE_MS };
  // A missing Host is refused by the app, as problem+json like everything else.
  const server = createServer({ ...timeouts, requireHostHeader: false }, (incoming, outgoing) => {
    void answerNode(reply, incoming, outgoing);
  });
  server.on("checkExpectation", (_, outgoing) => send(outgoing, EXPECTATION));
  server.on("clientError", answerClientError);
  server.on("connect", (_, socket) => end(socket, NO_TUNNEL));
  await bound(server, host, port, limits.variables);
  const actual = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(":") ? `[${host.replace(/^\[|\]$/g, "")}]` : host}:${actual}`,
    port: actual,
    /** Takes no new connection, waits up to `graceMs` for answers under way, then cuts the rest. */
    close: (graceMs: number) => closeServer(server, clock, graceMs),
  };
}

const CLOSE = { headers: { ...SAFE_HEADERS, connection: "close" } };
const EXPECTATION = problem("expectation_failed", "of Expect only 100-continue is understood", CLOSE);
const NO_PATH = problem("invalid_request", "the request line names no path", CLOSE);
const NO_TUNNEL = problem("method_not_allowed", "CONNECT is not possible here", CLOSE);

/** Answers a request of Node without the objects of fetch, which cost more than all else on the way. */
export async function answerNode(reply: App["reply"], incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  try {
    const target = targetOf(incoming.url);
    send(outgoing, target.startsWith("/") ? await reply(new NodeRequest(incoming, target)) : NO_PATH);
  } catch {
    outgoing.destroy();
  }
}

function send(outgoing: ServerResponse, { status, headers, body }: Reply): void {
  if (outgoing.destroyed) return;
  // Names and values in turn: Node writes them as they are.
  const lines: string[] = [];
  for (const name in headers) lines.push(name, headers[name] as string);
  if (status !== 204) lines.push("content-length", String(Buffer.byteLength(body)));
  outgoing.writeHead(status, lines).end(body);
}

/** Path and query of a request line. An absolute form, as for a proxy, is a URL of its own. */
export function targetOf(url = ""): string {
  const absolute = url.startsWith("/") || !URL.canParse(url) ? null : new URL(url);
  return absolute ? absolute.pathname + absolute.search : url;
}

/** A class and not an object of functions: one is made for every request. */
class NodeRequest implements ApiRequest {
  readonly carrier: IncomingMessage;
  readonly method: string;
  readonly path: string;
  readonly #target: string;

  constructor(carrier: IncomingMessage, target: string) {
    const question = target.indexOf("?");
    this.carrier = carrier;
    this.method = carrier.method ?? "GET";
    this.path = question === -1 ? target : target.slice(0, question);
    this.#target = target;
  }

  get query(): URLSearchParams {
    return new URLSearchParams(this.#target.slice(this.path.length));
  }

  header(name: string): string | null {
    return this.carrier.headers[name]?.toString() ?? null;
  }

  bytes(bytesMax: number): Promise<Uint8Array | null> {
    // Where the API is mounted a parser may have read the body and kept its bytes.
    const incoming: IncomingMessage & { readonly rawBody?: unknown } = this.carrier;
    const { rawBody } = incoming;
    if (rawBody instanceof Buffer) return Promise.resolve(rawBody.length > bytesMax ? null : rawBody);
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let size = 0;
      incoming.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size <= bytesMax) chunks.push(chunk);
        else resolve(null);
      });
      incoming.on("end", () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
      incoming.on("error", reject);
      if (incoming.destroyed) reject(new Error("the connection has ended"));
    });
  }
}

function bound(server: Server, host: string, port: number, variables?: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(new MakegoodError("invalid_config", bindWords(error, host, port, variables), { errno: error.code }, error));
    });
    server.listen(port, host.replace(/^\[|\]$/g, ""), resolve);
  });
}

function bindWords({ code, message }: NodeJS.ErrnoException, host: string, port: number, variables = "MAKEGOOD_"): string {
  const where = `port ${port} on ${host}`;
  if (code === "EADDRINUSE") return `${where} is in use: stop what uses it, or choose another with ${variables}PORT`;
  if (code === "EACCES") return `${where} is not allowed for this user: choose one above 1023 with ${variables}PORT`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return `${host} is not an address of this machine: check ${variables}HOST`;
  return `cannot listen on ${where}: ${message}`;
}

function answerClientError({ code = "" }: NodeJS.ErrnoException, socket: Duplex): void {
  if (code === "ECONNRESET" || !socket.writable) socket.destroy();
  else end(socket, CLIENT_ERRORS[code] ?? BAD_REQUEST);
}

const BAD_REQUEST = problem("invalid_request", "this is not a request that can be understood", CLOSE);
const CLIENT_ERRORS: Readonly<Record<string, Reply>> = {
  ERR_HTTP_REQUEST_TIMEOUT: problem("request_timeout", "the whole request did not arrive in time", CLOSE),
  HPE_HEADER_OVERFLOW: problem("headers_too_large", "the headers of a request may have at most 16 KiB together", CLOSE),
};

function end(socket: Duplex, { status, headers, body }: Reply): void {
  const all = Object.entries({ ...headers, "content-length": Buffer.byteLength(body) });
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`);
}

async function closeServer(server: Server, clock: Clock, graceMs: number): Promise<void> {
  const over = new AbortController();
  const closed = new Promise<void>((resolve) => server.close(() => resolve())).then(() => over.abort());
  const until = clock.monotonicMs() + graceMs;
  // A kept-alive connection becomes idle only after its answer: ask again until none is left.
  while (!over.signal.aborted && clock.monotonicMs() < until) {
    server.closeIdleConnections();
    await sleep(clock, 50, over.signal);
  }
  server.closeAllConnections();
  await closed;
}
