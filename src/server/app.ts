/** The API as one function from a request to a reply; it needs no socket, so the CLI and any framework can call it. */
import { type Caller, unlimited } from "../access/caller.ts";
import { ADDRESSES, type RouteId } from "../contract/addresses.ts";
import type { Permission, Route } from "../contract/route.ts";
import { ROUTES, routeIds } from "../contract/table.ts";
import { type HostRule, isAllowedHost, refuseCrossOrigin, type Token, tokenOf } from "./auth.ts";
import { HANDLERS, type Handler, refuseWithoutEngine } from "./handlers/handlers.ts";
import { createHealth } from "./health.ts";
import { type ApiRequest, PROBLEM_TYPE, problem, problemOf, type Refusal, type Reply, refused } from "./http.ts";
import type { Kernel } from "./kernel.ts";
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

export type Authorize = (request: ApiRequest, needs: Permission) => Caller | null | Promise<Caller | null>;

export interface App {
  /** `instead`: what is answered whatever is asked, as all answers are. */
  fetch(request: Request, instead?: Reply): Promise<Response>;
  /** The same without the objects of fetch, for a caller that has the request in another form. */
  reply(request: ApiRequest, instead?: Reply): Promise<Reply>;
  /** Counts nothing any more; the Makegood behind it goes on. */
  close(): void;
}

/** On every answer: nothing here is to be sniffed, framed or kept by a cache. */
export const SAFE_HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
  "cache-control": "no-store",
} as const;

const KNOWN = routeIds.map((id) => {
  const [method, path] = ADDRESSES[id];
  return { id, method, form: new RegExp(`^${path.replaceAll(".", "\\.").replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`) };
});
const at = (path: string) => KNOWN.filter(({ form }) => form.test(path));

/** Paths without parameters are found at once: the one that takes messages is among them. */
const AT: ReadonlyMap<string, typeof KNOWN> = new Map(Object.values(ADDRESSES).map(([, path]) => [path, at(path)]));

export function createApp(options: AppOptions): App {
  const { kernel } = options;
  const health = createHealth(kernel, options.tokens);

  async function handled(request: ApiRequest): Promise<Reply> {
    const method = request.method === "HEAD" ? "GET" : request.method;
    const path = belowBase(request.path, kernel.basePath);
    const here = AT.get(path) ?? at(path);
    const address = here.find((one) => one.method === method);
    const route: Route | undefined = address && ROUTES[address.id];
    const admitted = admit(request, options, route?.permission ?? "read");
    // Not awaited where it is known: each wait is a turn of the loop on the way of every message.
    const caller = admitted instanceof Promise ? await admitted : admitted;
    if (!caller) throw refused("unauthorized", "the program that this API is mounted in does not let this request in");
    if (!address || !route) throw here.length === 0 ? NOT_FOUND : methodNotAllowed(request.method, here);
    refuseWithoutEngine(kernel, address.id);
    const named = options.tokens.length > 0 || options.authorize !== undefined;
    const known = { params: paramsOf(address.form.exec(path)), caller, named };
    const asked = await readRequest(route, request, known, kernel.payloadBytesMax);
    return (HANDLERS[address.id] as Handler<RouteId>)(asked, kernel, health);
  }

  const reply: App["reply"] = async (request, instead) => {
    const { basePath = "" } = kernel;
    const found = instead ?? (await handled(request).catch((error) => problemOf(error) ?? unexpected(kernel, request, error)));
    const { status, headers, body } = found;
    const whole: Record<string, string> = { ...SAFE_HEADERS };
    // Not by a second spread: with every answer it costs more than the rest of this.
    for (const name in headers) whole[name] = headers[name] as string;
    if (whole.location) whole.location = basePath + whole.location;
    if (whole["content-type"] !== PROBLEM_TYPE) return { status, headers: whole, body };
    // Which request it was about; the path only, because a query may carry what should not be repeated.
    const instance = instead ? request.path : basePath + belowBase(request.path, basePath);
    return { status, headers: whole, body: `${body.slice(0, -1)},"instance":${JSON.stringify(instance)}}` };
  };
  return { fetch: (request, instead) => fetched(request, (one) => reply(one, instead)), reply, close: health.close };
}

const NOT_FOUND = refused("not_found", "there is nothing at this address");

export const isBelow = (base: string, path: string): boolean => base === "" || path === base || path.startsWith(`${base}/`);

/** What a framework has taken off already is as good as what we take off. */
const belowBase = (path: string, base = ""): string => (isBelow(base, path) ? path.slice(base.length) || "/" : path);

const NO_PARAMS = {};
const paramsOf = (found: RegExpExecArray | null): Readonly<Record<string, string>> =>
  found?.groups ? Object.fromEntries(Object.entries(found.groups).map(([name, part]) => [name, unescaped(part)])) : NO_PARAMS;

/** What is no escape stands for itself; so does a NUL, which no name has and no store can look for. */
function unescaped(part: string): string {
  try {
    const text = decodeURIComponent(part);
    return text.includes("\0") ? part : text;
  } catch {
    return part;
  }
}

/** Who asks, null where the program that mounts this lets nobody in; any other caller who may not ask is refused. */
function admit(request: ApiRequest, options: AppOptions, needs: Permission): ReturnType<Authorize> {
  const host = request.header("host");
  if (options.hosts !== null && host === null) throw refused("invalid_request", "a Host header is needed");
  if (options.hosts !== null && !isAllowedHost(host, options.hosts)) {
    const remedy = "add the name to MAKEGOOD_HOSTS (to `hosts` of mount) if it is yours";
    throw refused("misdirected_request", `this server does not answer for that Host; ${remedy}`);
  }
  if (request.method !== "GET" && request.method !== "HEAD") refuseCrossOrigin(request);
  if (needs === "open") return unlimited(options.anonymous, "anonymous");
  if (options.authorize) return options.authorize(request, needs);
  if (options.tokens.length === 0) return unlimited(options.anonymous, "anonymous");
  const token = tokenOf(request.header("authorization"), options.tokens);
  const ended = token?.expiresMs != null && token.expiresMs <= options.kernel.clock.wallMs();
  if (token && !ended) return unlimited(token.name, "token", token.name);
  const none = "a token is needed: Authorization: Bearer <secret>; the makegood command takes it from MAKEGOOD_TOKEN";
  const detail = token
    ? `the token ${token.name} expired at ${new Date(token.expiresMs ?? 0).toISOString()}: ask for a new one`
    : none;
  throw refused("unauthorized", detail, { headers: { "www-authenticate": 'Bearer realm="makegood"' } });
}

function methodNotAllowed(method: string, here: typeof KNOWN): Refusal {
  const methods: string[] = here.map((one) => one.method);
  const allow = (methods.includes("GET") ? ["HEAD", ...methods] : methods).join(", ");
  return refused("method_not_allowed", `${method.slice(0, 100)} is not possible here, only ${allow}`, { headers: { allow } });
}

/** What nobody foresaw is logged with everything and shown with nothing. */
function unexpected(kernel: Kernel, { method, path }: ApiRequest, error: unknown): Reply {
  kernel.log.error("a request failed unexpectedly", { method, path, error });
  return problem("internal_error", "something unexpected went wrong; the log says what");
}

async function fetched(raw: Request, answer: App["reply"]): Promise<Response> {
  const { pathname: path, searchParams: query, host } = new URL(raw.url);
  // A request that never was on a wire has its host in the URL only.
  const header = (name: string): string | null => raw.headers.get(name) ?? (name === "host" ? host : null);
  const request = { method: raw.method, path, query, header, bytes: (max: number) => bytesOf(raw, max), carrier: raw };
  const { status, headers, body } = await answer(request);
  return new Response(status === 204 || raw.method === "HEAD" ? null : body, { status, headers });
}

async function bytesOf(request: Request, bytesMax: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // What stops reading cancels the rest.
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
