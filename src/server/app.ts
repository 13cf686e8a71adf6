/**
 * The API as one function from Request to Response: checks the Host header, the token and the origin, reads the request by its route and
 * turns whatever goes wrong into problem+json. It needs no socket, so the CLI and any framework can call it.
 */
import { type Context, Hono } from "hono";
import { getPath } from "hono/utils/url";
import { ADDRESSES, type RouteId } from "../contract/addresses.ts";
import type { Permission, Route } from "../contract/route.ts";
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
  /** Says who asks instead of tokens; null: refused. */
  readonly authorize?: Authorize | undefined;
  /** The actor of changes while no token is needed. */
  readonly anonymous: string;
  /** Null where there is no network between the caller and us. */
  readonly hosts: HostRule | null;
}

export type Authorize = (request: Request, needs: Permission) => string | null | Promise<string | null>;

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
  const hono = new Hono({ getPath: (request) => belowBase(getPath(request), kernel.basePath) });
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
  hono.onError((error, context) => send(context, unexpected(kernel, context, error), kernel.basePath));
  return { fetch: (request) => hono.fetch(request), health, metrics };
}

async function answer(context: Context, options: AppOptions, id: RouteId, handler: Handler<RouteId>): Promise<Response> {
  const { kernel } = options;
  const route: Route = ROUTES[id];
  const asking = admit(context, options, route.permission);
  const gate = asking instanceof Promise ? await asking : asking;
  if (typeof gate !== "string") return send(context, gate, kernel.basePath);
  const absent = withoutEngine(kernel, id);
  if (absent !== null) return send(context, absent, kernel.basePath);
  const named = options.tokens.length > 0 || options.authorize !== undefined;
  try {
    const asked = await readRequest(route, requestOf(context, gate, named), kernel.payloadBytesMax);
    return send(context, asked.ok ? await handler(asked.value) : asked.reply, kernel.basePath);
  } catch (error) {
    return send(context, problemOf(error) ?? unexpected(kernel, context, error), kernel.basePath);
  }
}

/** A refusal that says nothing to a caller who may not ask. */
async function refuse(context: Context, options: AppOptions, reply: Reply): Promise<Response> {
  const gate = await admit(context, options, "read");
  return send(context, typeof gate === "string" ? reply : gate, options.kernel.basePath);
}

/** The actor, or the answer to send instead. */
function admit(context: Context, options: AppOptions, needs: Permission): string | Reply | Promise<string | Reply> {
  const header = (name: string): string | null => context.req.header(name) ?? null;
  const host = (): string => header("host") ?? new URL(context.req.url).host;
  if (options.hosts !== null && !isAllowedHost(host(), options.hosts)) {
    return problem(
      "misdirected_request",
      "this server does not answer for that Host; add the name to MAKEGOOD_HOSTS (to `hosts` of mount) if it is yours",
    );
  }
  const changes = context.req.method !== "GET" && context.req.method !== "HEAD";
  const foreign = changes ? crossOrigin(header) : null;
  if (foreign !== null) return foreign;
  if (needs === "open") return options.anonymous;
  if (options.authorize) return authorized(options.authorize(context.req.raw, needs));
  if (options.tokens.length === 0) return options.anonymous;
  const actor = actorOf(header("authorization"), options.tokens);
  const headers = { "www-authenticate": 'Bearer realm="makegood"' };
  const detail = "a token is needed: Authorization: Bearer <secret>; the makegood command takes it from MAKEGOOD_TOKEN";
  return actor ?? problem("unauthorized", detail, { headers });
}

async function authorized(asked: string | null | Promise<string | null>): Promise<string | Reply> {
  const actor = await asked;
  return actor || problem("unauthorized", "the program that this API is mounted in does not let this request in");
}

/** What a framework has taken off already is as good as what we take off. */
function belowBase(path: string, base = ""): string {
  if (base === "" || !(path === base || path.startsWith(`${base}/`))) return path;
  return path.slice(base.length) || "/";
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

function send(context: Context, reply: Reply, base = ""): Response {
  const { pathname } = new URL(context.req.url);
  const { status, headers, body } = withInstance(reply, base + belowBase(pathname, base));
  const whole: Record<string, string> = { ...SAFE_HEADERS, ...headers };
  if (base !== "" && "location" in whole) whole.location = base + whole.location;
  return new Response(status === 204 ? null : body, { status, headers: whole });
}
