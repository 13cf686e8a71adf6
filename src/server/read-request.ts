/** A request as its route says that it must be, read here and nowhere else; what does not fit is one refusal with every fault. */
import type { z } from "zod";
import type { Caller } from "../access/caller.ts";
import type { RouteId } from "../contract/addresses.ts";
import { type Checked, check, FAULTS_NAMED_MAX, type Fault, type Faults, faultsText, namedOf } from "../contract/faults.ts";
import type { Body, ProblemCode, Route } from "../contract/route.ts";
import type { BodyOf, ParamsOf, QueryOf } from "../contract/table.ts";
import type { ErrorCode } from "../message/errors.ts";
import { type Cursor, checkJson, cursorOn, eachMember, expectEnd, takeValue } from "../message/json-scanner.ts";
import { LIMITS } from "../message/limits.ts";
import { isTraceparent } from "../message/validate.ts";
import { type ApiRequest, type Refusal, refused } from "./http.ts";
import { type Own, ownOf, textValue } from "./json/wire.ts";

export interface Asked<Id extends RouteId> {
  readonly params: ParamsOf<Id>;
  readonly query: Own<QueryOf<Id>>;
  readonly body: Own<BodyOf<Id>>;
  /** Of the member `version` or of If-Match, where the route has it. */
  readonly version: number | undefined;
  readonly caller: Caller;
  /** Its name: the token's, or `local` where none is needed. */
  readonly actor: string;
  /** Whether that is the name of a token, and not one that everybody shares. */
  readonly named: boolean;
  header(name: string): string | null;
}

/** Longer than any topic, tenant, code or cursor. */
const PARAMETER_CHARS_MAX = 1_000;

type Known = Pick<Asked<RouteId>, "caller" | "named"> & { readonly params: Readonly<Record<string, string>> };

export async function readRequest(route: Route, request: ApiRequest, known: Known, payloadBytesMax: number) {
  const query = route.query === undefined ? {} : readQuery(route.query, request.query);
  const body = route.body === undefined ? undefined : await readBody(route.body, request, payloadBytesMax);
  const version = route.headers?.includes("if-match") ? readVersion(request, body) : undefined;
  const { params, caller, named } = known;
  return {
    params,
    caller,
    actor: caller.name,
    named,
    query,
    body,
    version,
    header: (name) => request.header(name),
  } as Asked<RouteId>;
}

export function refusal(code: ProblemCode, faults: Faults): Refusal {
  const errors = faults.named.map((fault) => ({ ...fault, code }));
  return refused(code, faultsText(faults), { errors, more: faults.more });
}

export const refusalOf = (code: ProblemCode, field: string, detail: string): Refusal =>
  refusal(code, { named: [{ field, detail }], more: 0 });

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

function together(faults: Iterable<Fault>, checked: Checked<unknown>): Faults {
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

const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-?8"?[ \t]*)?;?[ \t]*$/i;
/** ignoreBOM keeps a byte order mark visible, so that the scanner refuses it instead of dropping a byte sequence unseen. */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** `optional`: no body and no content type is allowed and comes back as an empty text. */
async function readText(request: ApiRequest, bytesMax: number, optional = false): Promise<string> {
  const type = request.header("content-type");
  const length = request.header("content-length");
  const empty = length === "0" || (length === null && request.header("transfer-encoding") === null);
  if (optional && empty && type === null) return "";
  if (type === null || !JSON_TYPE.test(type))
    throw refused("unsupported_media_type", "the content type must be application/json (in UTF-8)");
  const encoding = request.header("content-encoding");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity")
    throw refused("unsupported_media_type", "a compressed body is not accepted: send it without content-encoding");
  // A declared length is held to by Node's parser, so nothing beyond it can arrive.
  const read = Number(length) > bytesMax ? Promise.resolve(null) : request.bytes(bytesMax);
  const bytes = await read.catch(() => {
    throw refused("invalid_request", "the connection ended before the whole body had arrived");
  });
  if (bytes === null) {
    // The rest of the body is not wanted: the connection ends with this answer.
    const extra = { headers: { connection: "close" }, members: { limit: bytesMax } };
    throw refused("body_too_large", `the request body may have at most ${bytesMax} bytes`, extra);
  }
  try {
    return UTF8.decode(bytes);
  } catch {
    throw refused("invalid_request", "the body is not valid UTF-8");
  }
}

/** A Map: no name in it can reach a prototype. C1: names that came twice stand in `twice` once each, and no more than are shown. */
export type Members = { readonly fields: Map<string, unknown>; readonly twice: string[] };

/** `take` reads each member and says what stands for it. Null: it is no object. */
export function readMembers(cursor: Cursor, take: (cursor: Cursor, name: string) => unknown): Members | null {
  const members: Members = { fields: new Map(), twice: [] };
  const { fields, twice } = members;
  const isObject = eachMember(cursor, (name) => {
    if (fields.has(name) && twice.length < FAULTS_NAMED_MAX && !twice.includes(name)) twice.push(name);
    fields.set(name, take(cursor, name));
  });
  if (isObject) return members;
  takeValue(cursor);
  return null;
}

/** What the schema sees of a member stands beside its text: `true` where it does not care. */
const plainly = (cursor: Cursor): { text: string; value: unknown } => ({ text: takeValue(cursor), value: true });

/** A body of which the member `exact` is kept as the text that it is (I8); the rest is checked by the schema, and nothing is looked at twice. */
export function readExact<S extends z.ZodType>(schema: S, body: string, exact: string, code: ErrorCode, take = plainly) {
  let kept = "";
  const cursor = cursorOn(body, code);
  const members = readMembers(cursor, (_, name) => {
    if (name !== exact) return JSON.parse(takeValue(cursor));
    const { text, value } = take(cursor);
    kept = text;
    return value;
  });
  expectEnd(cursor);
  const checked = check(schema, members && Object.fromEntries(members.fields));
  const repeated = (members?.twice ?? []).map((name) => ({ field: name.slice(0, 100), detail: "is given twice" }));
  if (checked.ok && repeated.length === 0) return { value: ownOf(schema, checked.value), text: kept };
  throw refusal(code, together(repeated, checked));
}

/** One that does not fit is as good as none. */
export function traceparentOf({ header }: Pick<Asked<RouteId>, "header">): string | null {
  const given = header("traceparent");
  return isTraceparent(given) ? given : null;
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
