/**
 * The API as one function from Request to Response: checks the Host header, the token and the origin, reads the request by its route and
 * turns whatever goes wrong into problem+json. It needs no socket, so the CLI and any framework can call it.
 */
import { type Context, Hono } from "hono";
import { ADDRESSES, type RouteId } from "../contract/addresses.ts";
import type { Route } from "../contract/route.ts";
import { ROUTES, routeIds } from "../contract/table.ts";
import type { Metrics } from "../observe/metrics.ts";
import { actorOf, crossOrigin, type HostRule, isAllowedHost, type Token } from "./auth.ts";
import { createHandlers, type Handler } from "./handlers/handlers.ts";
import { withoutEngine } from "./handlers/recovery-request.ts";
import { createHealth, type Health } from "./health.ts";
import type { ApiRequest } from "./http.ts";
import type { Kernel } from "./kernel.ts";
import { serverMetrics } from "./metrics.ts";
import { problem, problemOf, type Reply, withInstance } from "./problem.ts";
import { readRequest } from "./read-request.ts";

export interface AppOptions {
  readonly kernel: Kernel;
  /** Empty: nobody needs a token, and every caller is `anonymous`. */
  readonly tokens: readonly Token[];
  /** The actor of changes while no token is needed. */
  readonly anonymous: string;
  /** Null where there is no network between the caller and us. */
  readonly hosts: HostRule | null;
}

export interface App {
  fetch(request: Request): Response | Promise<Response>;
  readonly health: Health;
  readonly metrics: Metrics;
}

/** On every answer: nothing here is to be sniffed, framed or kept by a cache. */
const SAFE_HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
  "cache-control": "no-store",
} as const;

export function createApp(options: AppOptions): App {
  const { kernel } = options;
  const health = createHealth(kernel);
  const metrics = serverMetrics(kernel, health);
  const handlers = createHandlers(kernel, health, metrics);
  const hono = new Hono();
  const methodsAt = new Map<string, string[]>();
  for (const id of routeIds) {
    const [method, template] = ADDRESSES[id];
    const path = template.replace(/\{(\w+)\}/g, ":$1");
    const handler = handlers[id] as Handler<RouteId>;
    hono.on(method, path, (context) => answer(context, options, id, handler));
    methodsAt.set(path, [...(methodsAt.get(path) ?? []), method]);
  }
  for (const [path, methods] of methodsAt) {
    const allow = methods.includes("GET") ? ["HEAD", ...methods] : methods;
    hono.all(path, (context) => refuse(context, options, methodNotAllowed(context.req.method, allow.join(", "))));
  }
  hono.notFound((context) => refuse(context, options, problem("not_found", "there is nothing at this address")));
  hono.onError((error, context) => send(context, unexpected(kernel, context, error)));
  return { fetch: (request) => hono.fetch(request), health, metrics };
}

async function answer(context: Context, options: AppOptions, id: RouteId, handler: Handler<RouteId>): Promise<Response> {
  const { kernel } = options;
  const route: Route = ROUTES[id];
  const gate = admit(context, options, route.permission === "open");
  if (typeof gate !== "string") return send(context, gate);
  const absent = withoutEngine(kernel, id);
  if (absent !== null) return send(context, absent);
  try {
    const asked = await readRequest(route, requestOf(context, gate, options.tokens.length > 0), kernel.payloadBytesMax);
    return send(context, asked.ok ? await handler(asked.value) : asked.reply);
  } catch (error) {
    return send(context, problemOf(error) ?? unexpected(kernel, context, error));
  }
}

/** A refusal that says nothing to a caller who may not ask. */
function refuse(context: Context, options: AppOptions, reply: Reply): Response {
  const gate = admit(context, options, false);
  return send(context, typeof gate === "string" ? reply : gate);
}

/** The actor, or the answer to send instead. */
function admit(context: Context, options: AppOptions, open: boolean): string | Reply {
  const header = (name: string): string | null => context.req.header(name) ?? null;
  if (options.hosts !== null && !isAllowedHost(header("host"), options.hosts)) {
    return problem(
      "misdirected_request",
      "this server does not answer for that Host; add the name to MAKEGOOD_HOSTS if it is yours",
    );
  }
  const changes = context.req.method !== "GET" && context.req.method !== "HEAD";
  const foreign = changes ? crossOrigin(header) : null;
  if (foreign !== null) return foreign;
  if (open || options.tokens.length === 0) return options.anonymous;
  const actor = actorOf(header("authorization"), options.tokens);
  const headers = { "www-authenticate": 'Bearer realm="makegood"' };
  const detail = "a token is needed: Authorization: Bearer <secret>; the makegood command takes it from MAKEGOOD_TOKEN";
  return actor ?? problem("unauthorized", detail, { headers });
}

function requestOf(context: Context, actor: string, named: boolean): ApiRequest {
  const { req } = context;
  return {
    method: req.method,
    path: req.path,
    params: new Map(Object.entries(req.param())),
    query: new URL(req.url).searchParams,
    actor,
    named,
    header: (name) => req.header(name) ?? null,
    get body() {
      return req.raw.body as ReadableStream<Uint8Array> | null;
    },
    bytes: async () => new Uint8Array(await req.raw.arrayBuffer()),
  };
}

function methodNotAllowed(method: string, allow: string): Reply {
  return problem("method_not_allowed", `${method} is not possible here, only ${allow}`, { headers: { allow } });
}

/** What nobody foresaw is logged with everything and shown with nothing. */
function unexpected(kernel: Kernel, context: Context, error: unknown): Reply {
  kernel.log.error("a request failed unexpectedly", { method: context.req.method, path: context.req.path, error });
  return problem("internal_error", "something unexpected went wrong; the log says what");
}

function send(context: Context, reply: Reply): Response {
  const { status, headers, body } = withInstance(reply, new URL(context.req.url).pathname);
  return new Response(status === 204 ? null : body, { status, headers: { ...SAFE_HEADERS, ...headers } });
}
