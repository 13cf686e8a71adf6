/**
 * The API of a Makegood that runs in the caller's own process, for the web framework that is there already: as a fetch handler and as Node
 * middleware. It needs tokens, a function that says who asks, or a name for everybody that is given on purpose. It never closes the Makegood.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Permission } from "../contract/route.ts";
import type { Makegood } from "../create.ts";
import { MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { SYSTEM } from "../recovery/provenance.ts";
import type { Worker } from "../worker/worker.ts";
import { type Authorize, createApp, SAFE_HEADERS } from "./app.ts";
import { type HostRule, parseTokens, type Token } from "./auth.ts";
import type { ApiRequest } from "./http.ts";
import { answerNode, send } from "./listen.ts";
import { problem, type Reply, withInstance } from "./problem.ts";
import { kernelOf } from "./serve.ts";

/** What is known of who asks, beside the request itself. */
export interface Asking {
  /** What the address is for: `read`, `accept`, `operate`, `decide` or `configure`. */
  readonly needs: Permission;
  /** The framework's own request, where `node` was called: a session may hang on it. */
  readonly incoming: IncomingMessage | undefined;
}

export interface MountOptions {
  /** Where it stands, as callers see it: `/makegood`. Absent: at the root. */
  readonly basePath?: string | undefined;
  /** Bearer tokens as MAKEGOOD_TOKENS has them: `name:secret,name2:secret2`. */
  readonly tokens?: string | undefined;
  /** The name under which the request acts, by whatever session or header the program knows; null: refused with 401. */
  readonly authorize?: ((request: Request, asking: Asking) => string | null | Promise<string | null>) | undefined;
  /** Everybody may do everything under this name. Without `hosts` it is then answered under names of this machine only. */
  readonly anonymous?: string | undefined;
  /** The names of the Host header that are ours; absent: any, because the framework decides that. */
  readonly hosts?: readonly string[] | undefined;
  /** Shown in /health. */
  readonly worker?: Worker | undefined;
  readonly payloadBytesMax?: number | undefined;
  /** CIDR ranges that sinks of topics made over this API may dial although they are private: as createMakegood was given them. */
  readonly sinkAllow?: readonly string[] | undefined;
}

export interface Mounted {
  /** For Hono and everything else that speaks Request and Response; paths may still have the base path, or have lost it already. */
  fetch(request: Request): Promise<Response>;
  /** For Express, Fastify (`raw`) and node:http. What is not below the base path goes to `next`, or is not found. */
  node(incoming: IncomingMessage, outgoing: ServerResponse, next?: (error?: unknown) => void): void;
  /** Answers 503 from now on and counts nothing any more; the Makegood goes on. */
  close(): void;
}

/** As a server asks its store: what /readyz says is at most this old. */
const PROBE_MS = 1_000;

const TAKEN =
  "the body was read before the request came here, so the payload's exact bytes are gone: mount Makegood before express.json() and other " +
  "body parsers (Fastify: without content type parsers for these routes)";

export function mount(mg: Makegood, options: MountOptions): Mounted {
  const base = basePathOf(options.basePath);
  const access = accessOf(options);
  let closed = false;
  const kernel = kernelOf({
    config: { payload_bytes_max: options.payloadBytesMax ?? LIMITS.payloadBytesMax, sink_allow: options.sinkAllow ?? [] },
    mg,
    worker: options.worker ?? null,
    draining: () => closed,
  });
  const { authorize } = options;
  const asked: Authorize | undefined = authorize && ((request, needs) => actorFrom(request, needs, authorize));
  const app = createApp({ ...access, authorize: asked, kernel: { ...kernel, basePath: base } });
  const release = mg.watch.often(PROBE_MS);

  const refusal = (url: string): Reply | null =>
    closed ? at(url, problem("closed", "this API was closed by the program that it is mounted in")) : null;
  let told = false;
  /** The program is wrong, not the caller: it is told once, and every caller why there is no answer. */
  const misused = (detail: string, url: string): Reply => {
    if (!told) mg.log.error(detail);
    told = true;
    return at(url, problem("internal_error", detail));
  };

  return {
    async fetch(request) {
      const refused = refusal(request.url) ?? (request.bodyUsed ? misused(TAKEN, request.url) : null);
      return refused === null ? app.fetch(request) : new Response(refused.body, refused);
    },
    node(incoming, outgoing, next) {
      const { originalUrl = incoming.url ?? "/", baseUrl = "" } = incoming as Routed;
      const wrong = baseUrl === "" || isBelow(baseUrl, base) ? null : elsewhere(baseUrl);
      if (wrong === null && !isBelow(base, pathOf(originalUrl))) {
        if (next) next();
        else send(outgoing, at(originalUrl, problem("not_found", `the API stands below ${base}`)));
        return;
      }
      const detail = wrong ?? (isTaken(incoming) ? TAKEN : null);
      const refused = refusal(originalUrl) ?? (detail === null ? null : misused(detail, originalUrl));
      // Frameworks take off where they routed by; we know it ourselves, and answers name the whole path.
      incoming.url = originalUrl;
      if (refused === null) void answerNode(app.reply, incoming, outgoing);
      else send(outgoing, refused);
    },
    close() {
      if (closed) return;
      closed = true;
      release();
      app.close();
    },
  };
}

/** What Express adds to a request: the address before it took off what it routed by, and what that was. */
interface Routed extends IncomingMessage {
  readonly originalUrl?: string;
  readonly baseUrl?: string;
  readonly rawBody?: unknown;
}

/** A parser that keeps the bytes themselves (`rawBody`) has taken nothing away. */
function isTaken(incoming: Routed): boolean {
  if (!incoming.readableDidRead || incoming.rawBody instanceof Buffer) return false;
  const { "content-length": length = "0", "transfer-encoding": coding } = incoming.headers;
  return length !== "0" || coding !== undefined;
}

const elsewhere = (baseUrl: string): string =>
  `this API is mounted at ${baseUrl} and does not know it: mount(mg, { basePath: ${JSON.stringify(baseUrl)} })`;

const isBelow = (base: string, path: string): boolean => base === "" || path === base || path.startsWith(`${base}/`);

function pathOf(url: string): string {
  if (!url.startsWith("/")) return URL.canParse(url) ? new URL(url).pathname : url;
  return url.split(/[?#]/, 1)[0] ?? "/";
}

const at = (url: string, reply: Reply): Reply =>
  withInstance({ ...reply, headers: { ...SAFE_HEADERS, ...reply.headers } }, pathOf(url));

type Access = { readonly tokens: readonly Token[]; readonly anonymous: string; readonly hosts: HostRule | null };

function accessOf({ tokens, authorize, anonymous, hosts }: MountOptions): Access {
  const given = Object.entries({ tokens, authorize, anonymous }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (given.length !== 1) {
    const which = given.length === 0 ? "nobody says who may use this API" : `only one of ${given.join(" and ")} may be given`;
    throw refused(`${which}: give tokens ("name:secret"), authorize (a function), or anonymous ("a name") for everybody`);
  }
  const names = hosts ?? [];
  const rule = hosts === undefined && anonymous === undefined ? null : { bound: "localhost", names };
  if (anonymous !== undefined) return { tokens: [], anonymous: actorName(anonymous, "anonymous"), hosts: rule };
  const { tokens: parsed, faults } = tokens === undefined ? { tokens: [], faults: [] } : parseTokens(tokens);
  if (faults.length > 0) throw refused(`tokens: ${faults.join("; ")}`);
  return { tokens: parsed, anonymous: "anonymous", hosts: rule };
}

type Says = NonNullable<MountOptions["authorize"]>;

async function actorFrom({ carrier }: ApiRequest, needs: Permission, authorize: Says): Promise<string | null> {
  const actor =
    carrier instanceof Request
      ? await authorize(carrier, { needs, incoming: undefined })
      : await authorize(headOf(carrier as IncomingMessage), { needs, incoming: carrier as IncomingMessage });
  return actor === null || actor === undefined ? null : actorName(actor, "authorize");
}

/** The request without its body, which is ours to read. */
function headOf({ method = "GET", url = "/", headers }: IncomingMessage): Request {
  const lines = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [value].flat().map((one) => [name, one]),
  );
  return new Request(new URL(url, `http://${headers.host ?? "localhost"}`), { method, headers: lines });
}

const NAME_CHARS_MAX = 200;

/** It goes on record with what was done. */
function actorName(name: unknown, from: string): string {
  if (typeof name !== "string" || name === "" || name.length > NAME_CHARS_MAX)
    throw refused(`${from} must give a name of 1 to ${NAME_CHARS_MAX} characters`);
  if (name === SYSTEM.actor) throw refused(`${from}: ${name} is what Makegood calls itself on record: choose another name`);
  return name;
}

function basePathOf(given = ""): string {
  const base = given.replace(/\/+$/, "");
  if (base === "" || /^(?:\/[A-Za-z0-9._~-]+)+$/.test(base)) return base;
  throw refused(`basePath must be like "/makegood" (letters, digits, . _ ~ - between slashes), not ${JSON.stringify(given)}`);
}

const refused = (text: string): MakegoodError => new MakegoodError("invalid_config", `mount: ${text}`);
