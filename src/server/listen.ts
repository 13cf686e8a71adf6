/**
 * The socket in front of the app: bounded waits for headers and bodies (a slow sender gets 408, not a place for ever),
 * problem+json also for what is not even a request, and a close that lets answers under way finish.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { ProblemCode } from "../contract/problem-codes.ts";
import { MakegoodError } from "../message/errors.ts";
import { type Clock, sleep } from "../platform/clock.ts";
import { PROBLEM_TYPE, problem } from "./problem.ts";

export interface ListenOptions {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** For tests of slow senders. */
  readonly headersTimeoutMs?: number | undefined;
  readonly requestTimeoutMs?: number | undefined;
}

export interface Listening {
  readonly url: string;
  readonly port: number;
  /** Takes no new connection, waits up to `graceMs` for answers under way, then cuts the rest. */
  close(graceMs: number): Promise<void>;
}

const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than the idle limit of common load balancers, so that they and not we end an idle connection. */
const KEEP_ALIVE_MS = 65_000;

export async function listen(options: ListenOptions): Promise<Listening> {
  const { host, port, clock } = options;
  const listener = getRequestListener(options.fetch, {
    overrideGlobalObjects: false,
    errorHandler: () => badRequest(),
  });
  const headersTimeout = options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS;
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const connectionsCheckingInterval = Math.min(1_000, headersTimeout);
  const timeouts = { headersTimeout, requestTimeout, connectionsCheckingInterval, keepAliveTimeout: KEEP_ALIVE_MS };
  // A missing Host is refused by the app, as problem+json like everything else.
  const how = { ...timeouts, requireHostHeader: false };
  const server = createServer(how, (incoming, outgoing) => void listener(incoming, outgoing));
  server.on("checkExpectation", (_, outgoing) => refuseExpectation(outgoing));
  server.on("clientError", answerClientError);
  await bound(server, host, port);
  const actual = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(":") ? `[${host.replace(/^\[|\]$/g, "")}]` : host}:${actual}`,
    port: actual,
    close: (graceMs) => closeServer(server, clock, graceMs),
  };
}

function refuseExpectation(outgoing: ServerResponse): void {
  const { status, headers, body } = problem("expectation_failed", "of Expect only 100-continue is understood");
  outgoing.writeHead(status, { ...headers, connection: "close" }).end(body);
}

/** To what is no request at all. */
export function badRequest(): Response {
  const { status, headers, body } = problem("invalid_request", "this is not a request that can be understood");
  return new Response(body, { status, headers });
}

function bound(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(new MakegoodError("invalid_config", bindWords(error, host, port), { errno: error.code }, error));
    });
    server.listen(port, host.replace(/^\[|\]$/g, ""), resolve);
  });
}

function bindWords(error: NodeJS.ErrnoException, host: string, port: number): string {
  switch (error.code) {
    case "EADDRINUSE":
      return `port ${port} on ${host} is in use: stop what uses it, or choose another with MAKEGOOD_PORT`;
    case "EACCES":
      return `port ${port} on ${host} is not allowed for this user: choose one above 1023 with MAKEGOOD_PORT`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `${host} is not an address of this machine: check MAKEGOOD_HOST`;
    default:
      return `cannot listen on ${host} port ${port}: ${error.message}`;
  }
}

/** A socket that never became a request still gets an answer that says why. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const { code, status, phrase } = CLIENT_ERRORS[error.code ?? ""] ?? BAD_REQUEST;
  const { body } = problem(code, phrase);
  const head = `HTTP/1.1 ${status} ${phrase}\r\ncontent-type: ${PROBLEM_TYPE}\r\ncontent-length: ${Buffer.byteLength(body)}`;
  socket.end(`${head}\r\nconnection: close\r\n\r\n${body}`);
}

interface ClientError {
  readonly code: ProblemCode;
  readonly status: number;
  readonly phrase: string;
}

const BAD_REQUEST: ClientError = { code: "invalid_request", status: 400, phrase: "Bad Request" };
const CLIENT_ERRORS: Readonly<Record<string, ClientError>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { code: "request_timeout", status: 408, phrase: "Request Timeout" },
  HPE_HEADER_OVERFLOW: { code: "headers_too_large", status: 431, phrase: "Request Header Fields Too Large" },
};

async function closeServer(server: Server, clock: Clock, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const over = new AbortController();
  const until = clock.monotonicMs() + graceMs;
  void closed.then(() => over.abort());
  // A kept-alive connection becomes idle only after its answer: ask again until none is left.
  while (!over.signal.aborted && clock.monotonicMs() < until) {
    server.closeIdleConnections();
    await sleep(clock, 50, over.signal);
  }
  server.closeAllConnections();
  await closed;
}
