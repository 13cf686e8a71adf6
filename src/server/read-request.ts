/**
 * A request as its route says that it must be: path, query, headers and body are read here and nowhere else. What does not fit becomes one
 * refusal with every fault; what comes out has the types of the contract.
 */
import type { z } from "zod";
import type { RouteId } from "../contract/addresses.ts";
import { type Checked, check, type Fault, type Faults, faultsText, namedOf } from "../contract/faults.ts";
import type { ProblemCode } from "../contract/problem-codes.ts";
import type { Body, Route } from "../contract/route.ts";
import type { BodyOf, ParamsOf, QueryOf } from "../contract/table.ts";
import type { ErrorCode } from "../message/errors.ts";
import { checkJson } from "../message/json-scanner.ts";
import { LIMITS } from "../message/limits.ts";
import { readText } from "./body.ts";
import type { ApiRequest } from "./http.ts";
import { type Own, ownOf, textValue } from "./json/wire.ts";
import { type Refusal, refused } from "./problem.ts";

/** What a handler gets, in the kernel's words. */
export interface Asked<Id extends RouteId> {
  readonly params: ParamsOf<Id>;
  readonly query: Own<QueryOf<Id>>;
  readonly body: Own<BodyOf<Id>>;
  /** Of the member `version` or of If-Match, where the route has it. */
  readonly version: number | undefined;
  /** Who asks: the token's name, or `local` where none is needed. */
  readonly actor: string;
  /** Whether that is the name of a token, and not one that everybody shares. */
  readonly named: boolean;
  header(name: string): string | null;
}

/** Longer than any topic, tenant, code or cursor. */
const PARAMETER_CHARS_MAX = 1_000;

export async function readRequest(
  route: Route,
  request: ApiRequest,
  params: Readonly<Record<string, string>>,
  by: Pick<Asked<RouteId>, "actor" | "named">,
  payloadBytesMax: number,
): Promise<Asked<RouteId>> {
  const query = route.query === undefined ? {} : readQuery(route.query, request.query);
  const body = route.body === undefined ? undefined : await readBody(route.body, request, payloadBytesMax);
  const version = route.headers?.includes("if-match") ? readVersion(request, body) : undefined;
  const header = (name: string): string | null => request.header(name);
  return { params, query, body, version, ...by, header } as Asked<RouteId>;
}

export function refusal(code: ProblemCode, faults: Faults): Refusal {
  const errors = faults.named.map((fault) => ({ ...fault, code }));
  return refused(code, faultsText(faults), { errors, more: faults.more });
}

/** One fault that only a handler can see. */
export const refusalOf = (code: ProblemCode, field: string, detail: string): Refusal =>
  refusal(code, { named: [{ field, detail }], more: 0 });

/** How many a page has: as many as were asked for, within what this page may carry. */
export function limited<Q extends { readonly limit?: number | undefined }>(query: Q, max: number = LIMITS.pageMax) {
  const { limit = Math.min(LIMITS.pageDefault, max) } = query;
  if (limit > max) throw refusalOf("invalid_query", "limit", `must be an integer from 1 to ${max} where payloads are shown`);
  return { ...query, limit };
}

/** Numbers and flags are text in a query: what a parameter is to be says how it is read. */
function readQuery(schema: z.ZodObject, params: URLSearchParams): unknown {
  const faults: Fault[] = [];
  const given: [string, unknown][] = [];
  const open = schema.def.catchall?._zod.def.type !== "never";
  for (const name of new Set(params.keys())) {
    const [value = "", ...again] = params.getAll(name);
    const known = Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined;
    const detail = !known && !open ? "unknown parameter" : again.length > 0 ? "is given twice" : parameterFault(value);
    if (detail !== null) faults.push({ field: name.slice(0, 100), detail });
    else if (value !== "" || open) given.push([name, known ? textValue(value, known) : value]);
  }
  const checked = check(schema, Object.fromEntries(given));
  if (checked.ok && faults.length === 0) return ownOf(schema, checked.value);
  throw refusal("invalid_query", together(faults, checked));
}

function parameterFault(value: string): string | null {
  if (value.includes("\u0000")) return "holds a NUL";
  return value.length > PARAMETER_CHARS_MAX ? `may have at most ${PARAMETER_CHARS_MAX} characters` : null;
}

/** The faults of the form, then those of the schema. */
export function together(faults: Iterable<Fault>, checked: Checked<unknown>): Faults {
  const others = checked.ok ? { named: [], more: 0 } : checked.faults;
  const { named, more } = namedOf([...faults, ...others.named]);
  return { named, more: more + others.more };
}

async function readBody(body: Body, request: ApiRequest, payloadBytesMax: number): Promise<unknown> {
  const bytesMax = typeof body.bytesMax === "number" ? body.bytesMax : body.bytesMax(payloadBytesMax);
  const text = await readText(request, bytesMax, body.optional);
  if (body.exact) return text;
  const given = text === "" ? "{}" : text;
  checkJson(given, body.invalid as ErrorCode);
  const checked = check(body.schema, JSON.parse(given));
  if (!checked.ok) throw refusal(body.invalid, checked.faults);
  return ownOf(body.schema, checked.value);
}

/** The version that a change insists on: the member `version`, else the header If-Match. */
function readVersion(request: ApiRequest, body: unknown): number | undefined {
  const version = (body as { readonly version?: number } | undefined)?.version;
  const header = request.header("if-match")?.trim();
  if (header === undefined || header === "*") return version;
  const match = /^(?:W\/)?"?([0-9]{1,15})"?$/.exec(header);
  const named = match?.[1] === undefined ? undefined : Number(match[1]);
  if (named === undefined) throw refusalOf("invalid_request", "If-Match", 'must be the version, as in the ETag: "3"');
  if (version !== undefined && version !== named)
    throw refusalOf("invalid_request", "version", "is another one than that of If-Match");
  return version ?? named;
}
