/** The API of a Makegood in the caller's own process, as a fetch handler and as Node middleware. It never closes the Makegood. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { unlimited } from "../access/caller.ts";
import type { Permission } from "../contract/route.ts";
import type { Makegood } from "../create.ts";
import { MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { SYSTEM } from "../recovery/provenance.ts";
import type { Worker } from "../worker/worker.ts";
import { type AppOptions, type Authorize, createApp, isBelow } from "./app.ts";
import { parseTokens } from "./auth.ts";
import { problem, type Reply } from "./http.ts";
import { kernelOf, PROBE_MS } from "./kernel.ts";
import { answerNode, targetOf } from "./listen.ts";

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

const TAKEN =
  "the body was read before the request came here, so the payload's exact bytes are gone: mount Makegood before express.json() and other " +
  "body parsers (Fastify: without content type parsers for these routes)";

export function mount(mg: Makegood, options: MountOptions): Mounted {
  const { worker, payloadBytesMax = LIMITS.payloadBytesMax, sinkAllow = [], authorize } = options;
  const base = basePathOf(options.basePath);
  const config = { payload_bytes_max: payloadBytesMax, sink_allow: sinkAllow };
  const app = createApp({
    ...accessOf(options),
    authorize: authorize && asking(authorize),
    kernel: kernelOf({ config, mg, worker, basePath: base, draining: () => closed }),
  });
  const release = mg.watch.often(PROBE_MS);
  let closed = false;
  let told = false;
  /** The program is wrong, not the caller: it is told once, and every caller why there is no answer. */
  const refusal = (detail: string | null): Reply | undefined => {
    if (closed) return problem("closed", "this API was closed by the program that it is mounted in");
    if (detail === null) return undefined;
    if (!told) mg.log.error(detail);
    told = true;
    return problem("internal_error", detail);
  };
  return {
    fetch: (request) => app.fetch(request, refusal(request.bodyUsed ? TAKEN : null)),
    node(incoming, outgoing, next) {
      const { originalUrl = incoming.url ?? "/", baseUrl = "" } = incoming as Routed;
      const elsewhere = `mounted at ${baseUrl} and does not know it: mount(mg, { basePath: ${JSON.stringify(baseUrl)} })`;
      const wrong = baseUrl === "" || isBelow(baseUrl, base) ? null : `this API is ${elsewhere}`;
      const outside = wrong === null && !isBelow(base, targetOf(originalUrl).split(/[?#]/, 1)[0] ?? "/");
      if (outside && next) return next();
      const instead = outside
        ? problem("not_found", `the API stands below ${base}`)
        : refusal(wrong ?? (isTaken(incoming) ? TAKEN : null));
      // Frameworks take off where they routed by; we know it ourselves, and answers name the whole path.
      incoming.url = originalUrl;
      void answerNode((request) => app.reply(request, instead), incoming, outgoing);
    },
    close() {
      if (closed) return;
      closed = true;
      release();
      app.close();
    },
  };
}

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

function accessOf({ tokens, authorize, anonymous, hosts }: MountOptions): Pick<AppOptions, "tokens" | "anonymous" | "hosts"> {
  const given = Object.entries({ tokens, authorize, anonymous }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (given.length !== 1) {
    const which = given.length === 0 ? "nobody says who may use this API" : `only one of ${given.join(" and ")} may be given`;
    throw refused(`${which}: give tokens ("name:secret"), authorize (a function), or anonymous ("a name") for everybody`);
  }
  const names = hosts ?? [];
  const rule = hosts === undefined && anonymous === undefined ? null : { bound: "localhost", names };
  if (anonymous !== undefined) return { tokens: [], anonymous: actorName(anonymous, "anonymous"), hosts: rule };
  const { tokens: parsed, faults } = parseTokens(tokens ?? null);
  if (faults.length > 0) throw refused(`tokens: ${faults.join("; ")}`);
  return { tokens: parsed, anonymous: "anonymous", hosts: rule };
}

const asking =
  (authorize: NonNullable<MountOptions["authorize"]>): Authorize =>
  async ({ carrier }, needs) => {
    const incoming = carrier instanceof Request ? undefined : (carrier as IncomingMessage);
    const actor = await authorize(incoming ? headOf(incoming) : (carrier as Request), { needs, incoming });
    return actor === null || actor === undefined ? null : unlimited(actorName(actor, "authorize"), "mount");
  };

/** The request without its body, which is ours to read. */
function headOf({ method = "GET", url = "/", headers }: IncomingMessage): Request {
  const lines = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
  return new Request(new URL(url, `http://${headers.host ?? "localhost"}`), { method, headers: lines });
}

/** It goes on record with what was done. */
function actorName(name: unknown, from: string): string {
  if (typeof name !== "string" || name === "" || name.length > 200)
    throw refused(`${from} must give a name of 1 to 200 characters`);
  if (name === SYSTEM.actor) throw refused(`${from}: ${name} is what Makegood calls itself on record: choose another name`);
  return name;
}

function basePathOf(given = ""): string {
  const base = given.replace(/\/+$/, "");
  if (base === "" || /^(?:\/[A-Za-z0-9._~-]+)+$/.test(base)) return base;
  throw refused(`basePath must be like "/makegood" (letters, digits, . _ ~ - between slashes), not ${JSON.stringify(given)}`);
}

const refused = (text: string): MakegoodError => new MakegoodError("invalid_config", `mount: ${text}`);
