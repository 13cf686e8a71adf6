/**
 * The query of a recovery request, read parameter by parameter. Every fault is collected and answered at once; a parameter that nobody
 * asks for is refused, so that a misspelt filter never looks like an empty result.
 */
import { LIMITS } from "../../../message/limits.ts";
import { type ProblemItem, problem } from "../../contract/problem.ts";
import { type Parsed, parsed, refused } from "../../http.ts";

export interface Query {
  text(name: string): string | undefined;
  oneOf<T extends string>(name: string, allowed: readonly T[]): T | undefined;
  boolean(name: string): boolean | undefined;
  integer(name: string, min: number, max: number): number | undefined;
  /** `limit` and `cursor`, as every list has them. */
  page(max?: number): { readonly limit: number; readonly cursor: string | undefined };
}

/** Longer than any topic, tenant, code or cursor. */
const CHARS_MAX = 1_000;

export function readQuery<T>(params: URLSearchParams, read: (query: Query) => T): Parsed<T> {
  const errors: ProblemItem[] = [];
  const taken = new Set<string>();
  const fault = (field: string, detail: string): undefined => {
    errors.push({ field, code: "invalid_query", detail });
    return undefined;
  };
  const text = (name: string): string | undefined => {
    taken.add(name);
    const values = params.getAll(name);
    const [value] = values;
    if (values.length > 1) return fault(name, "is given twice");
    if (value?.includes("\u0000")) return fault(name, "holds a NUL");
    if (value !== undefined && value.length > CHARS_MAX) return fault(name, `may have at most ${CHARS_MAX} characters`);
    return value === "" ? undefined : value;
  };
  const oneOf = <O extends string>(name: string, allowed: readonly O[]): O | undefined => {
    const value = text(name);
    const found = allowed.find((one) => one === value);
    return value === undefined || found !== undefined ? found : fault(name, `must be one of ${allowed.join(", ")}`);
  };
  const integer = (name: string, min: number, max: number): number | undefined => {
    const value = text(name);
    if (value === undefined) return undefined;
    const fits = /^[0-9]{1,16}$/.test(value) && Number(value) >= min && Number(value) <= max;
    return fits ? Number(value) : fault(name, `must be an integer from ${min} to ${max}`);
  };
  const query: Query = {
    text,
    oneOf,
    integer,
    boolean(name) {
      const value = oneOf(name, ["true", "false"]);
      return value === undefined ? undefined : value === "true";
    },
    page: (max = LIMITS.pageMax) => ({
      limit: integer("limit", 1, max) ?? Math.min(LIMITS.pageDefault, max),
      cursor: text("cursor"),
    }),
  };
  const value = read(query);
  for (const name of new Set(params.keys())) if (!taken.has(name)) fault(name.slice(0, 100), "unknown parameter");
  if (errors.length === 0) return parsed(value);
  const detail = errors.map((one) => `${one.field}: ${one.detail}`).join("; ");
  return refused(problem("invalid_query", detail, { errors }));
}
