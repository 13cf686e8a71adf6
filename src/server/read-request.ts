/**
 * A request as its route says that it must be: path, query, headers and body are read here and nowhere else. What does not fit becomes one
 * refusal with every fault; what comes out has the types of the contract.
 */
import type { z } from "zod";
import type { RouteId } from "../contract/addresses.ts";
import { check, type Fault, type Faults, faultsText, namedOf } from "../contract/faults.ts";
import type { ProblemCode } from "../contract/problem-codes.ts";
import type { Body, Route } from "../contract/route.ts";
import type { BodyOf, ParamsOf, QueryOf } from "../contract/table.ts";
import type { ErrorCode } from "../message/errors.ts";
import { readText } from "./body.ts";
import { type ApiRequest, type Parsed, parsed, refused } from "./http.ts";
import { checkJson } from "./payload-scanner.ts";
import { problem, type Reply } from "./problem.ts";

/** What a handler gets. */
export interface Asked<Id extends RouteId> {
  readonly params: ParamsOf<Id>;
  readonly query: QueryOf<Id>;
  readonly body: BodyOf<Id>;
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

export async function readRequest(route: Route, request: ApiRequest, payloadBytesMax: number): Promise<Parsed<Asked<RouteId>>> {
  const query = route.query === undefined ? parsed({}) : readQuery(route.query, request.query);
  if (!query.ok) return query;
  const body = route.body === undefined ? parsed(undefined) : await readBody(route.body, request, payloadBytesMax);
  if (!body.ok) return body;
  const version = route.headers?.includes("if-match") ? readVersion(request, body.value) : parsed(undefined);
  if (!version.ok) return version;
  const { actor, named } = request;
  const params = Object.fromEntries(request.params) as ParamsOf<RouteId>;
  const asked = { params, query: query.value, body: body.value, version: version.value, actor, named };
  return parsed({ ...asked, header: (name: string) => request.header(name) } as Asked<RouteId>);
}

export function refusal(code: ProblemCode, faults: Faults): Reply {
  const errors = faults.named.map((fault) => ({ ...fault, code }));
  return problem(code, faultsText(faults), { errors, more: faults.more });
}

const refuseFor = (code: ProblemCode, faults: Faults): Parsed<never> => refused(refusal(code, faults));

/** Numbers and flags are text in a query: what a parameter is to be says how it is read. */
function readQuery(schema: z.ZodObject, params: URLSearchParams): Parsed<unknown> {
  const faults: Fault[] = [];
  const given: [string, unknown][] = [];
  const open = schema.def.catchall?._zod.def.type !== "never";
  for (const name of new Set(params.keys())) {
    const [value = "", ...again] = params.getAll(name);
    const field = name.slice(0, 100);
    if (!Object.hasOwn(schema.shape, name) && !open) faults.push({ field, detail: "unknown parameter" });
    else if (again.length > 0) faults.push({ field, detail: "is given twice" });
    else if (value.includes("\u0000")) faults.push({ field, detail: "holds a NUL" });
    else if (value.length > PARAMETER_CHARS_MAX)
      faults.push({ field, detail: `may have at most ${PARAMETER_CHARS_MAX} characters` });
    else if (value !== "" || open) given.push([name, parameterOf(value, schema.shape[name])]);
  }
  const checked = check(schema, Object.fromEntries(given));
  if (checked.ok && faults.length === 0) return parsed(checked.value);
  const more = checked.ok ? { named: [], more: 0 } : checked.faults;
  const { named, more: unnamed } = namedOf([...faults, ...more.named]);
  return refuseFor("invalid_query", { named, more: unnamed + more.more });
}

function parameterOf(text: string, schema: z.core.$ZodType | undefined): unknown {
  const kind = schema && kindOf(schema);
  if (kind === "number" && /^-?[0-9]{1,16}$/.test(text)) return Number(text);
  if (kind === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

/** What is inside of optional, nullable and transformed. */
function kindOf(schema: z.core.$ZodType): string {
  const def = schema._zod.def as { type: string; innerType?: z.core.$ZodType; in?: z.core.$ZodType };
  const inner = def.innerType ?? def.in;
  return inner === undefined ? def.type : kindOf(inner);
}

async function readBody(body: Body, request: ApiRequest, payloadBytesMax: number): Promise<Parsed<unknown>> {
  const bytesMax = typeof body.bytesMax === "number" ? body.bytesMax : body.bytesMax(payloadBytesMax);
  const text = await readText(request, bytesMax, body.optional);
  if (!text.ok || body.exact) return text;
  const given = text.value === "" ? "{}" : text.value;
  checkJson(given, body.invalid as ErrorCode);
  const checked = check(body.schema, JSON.parse(given));
  return checked.ok ? parsed(checked.value) : refuseFor(body.invalid, checked.faults);
}

/** The version that a change insists on: the member `version`, else the header If-Match. */
function readVersion(request: ApiRequest, body: unknown): Parsed<number | undefined> {
  const version = (body as { readonly version?: number } | undefined)?.version;
  const header = request.header("if-match")?.trim();
  if (header === undefined || header === "*") return parsed(version);
  const match = /^(?:W\/)?"?([0-9]{1,15})"?$/.exec(header);
  const named = match?.[1] === undefined ? undefined : Number(match[1]);
  const one = (field: string, detail: string) => refuseFor("invalid_request", { named: [{ field, detail }], more: 0 });
  if (named === undefined) return one("If-Match", 'must be the version, as in the ETag: "3"');
  if (version !== undefined && version !== named) return one("version", "is another one than that of If-Match");
  return parsed(version ?? named);
}
