/** The values that schemas are made of, each with the words for what is wrong with it. Null in an optional field is absent. */
import { z } from "zod";
import { LIMITS } from "../message/limits.ts";
import { isTooLong, isTopicName, isWellFormed, textProblem } from "../message/validate.ts";
import { unknownFields } from "./faults.ts";

/** The error of a schema: `wrong`, or that it is missing. */
const says = (wrong: string, missing = "is missing") => ({
  error: (issue: { readonly input?: unknown }) => (issue.input === undefined || issue.input === null ? missing : wrong),
});

/** What it is for is said of the field, absent or not. */
export const optional = <S extends z.ZodType>(schema: S) => {
  const made = schema.nullish().transform((value) => value ?? undefined);
  return schema.description === undefined ? made : made.describe(schema.description);
};

type Optionals<S> = { [K in keyof S]: ReturnType<typeof optional<S[K] & z.ZodType>> };

export const optionals = <const S extends Readonly<Record<string, z.ZodType>>>(shape: S) =>
  Object.fromEntries(Object.entries(shape).map(([name, one]) => [name, optional(one)])) as Optionals<S>;

export function text(missing?: string) {
  const said = says("must be a string that is not empty", missing);
  return z.string(said).min(1, said);
}

export const anyText = () => z.string(says("must be a string"));

export function integer(min: number, max: number) {
  const said = says(`must be an integer from ${min} to ${max}`);
  return z.int(said).min(min, said).max(max, said);
}

export function number(min: number, max: number) {
  const said = says(`must be a number from ${min} to ${max}`);
  return z.number(said).min(min, said).max(max, said);
}

export const flag = () => z.boolean(says("must be true or false"));

export const oneOf = <const T extends string>(allowed: readonly T[]) =>
  z.enum(allowed as readonly [T, ...T[]], says(`must be one of ${allowed.join(", ")}`));

export function list<S extends z.ZodType>(one: S, max: number, what: string, missing?: string) {
  const said = says(`must be a list of 1 to ${max} ${what}`, missing);
  return z.array(one, said).min(1, said).max(max, said);
}

export function object<const S extends z.core.$ZodShape>(shape: S, missing?: string) {
  const unknown = ({ keys }: { readonly keys?: unknown }) => unknownFields(keys as string[], Object.keys(shape));
  const { error } = says("must be an object", missing);
  return z.strictObject(shape, { error: (issue) => (issue.code === "unrecognized_keys" ? unknown(issue) : error(issue)) });
}

/** Text for the history: a reason, a note. Blank is refused, and white space around it is dropped. */
export const note = (missing?: string) => {
  const error = `may have at most ${LIMITS.reasonBytesMax} bytes, without NUL or lone surrogates`;
  const fits = (value: string) => !isTooLong(value, LIMITS.reasonBytesMax) && !/\0/.test(value) && isWellFormed(value);
  return text(missing).trim().min(1, "must not be blank").refine(fits, { error });
};

export const reason = () =>
  note("is missing: say why, it becomes part of the history").describe("why; it becomes part of the history");

export const version = () => integer(0, Number.MAX_SAFE_INTEGER);
export const ifVersion = () => optional(version().describe("refuse if it has moved on since"));
const recorded = () => optional(note().describe("why; it becomes part of the record"));
export const versioned = () => ({ version: ifVersion(), reason: recorded() });

export const line = (bytesMax = 255) =>
  text().refine((value) => !isTooLong(value, bytesMax) && !/\p{Cc}|\p{Surrogate}/u.test(value), {
    error: `may have at most ${bytesMax} bytes, without control characters or lone surrogates`,
  });

/** A key, a tenant or an ordering key, by the rules that hold for a message from code. */
export const keyText = (bytesMax: number) =>
  anyText().check((context) => {
    const problem = textProblem(context.value, bytesMax);
    if (problem !== null) context.issues.push({ code: "custom", message: problem, input: context.value });
  });

export const topicName = () =>
  text().refine(isTopicName, { error: "must be namespace/name, each of lower-case letters, digits and . _ -" });

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const uuid = () => text().regex(UUID, { error: "must be a UUID in lower case" });

export const numberId = () => integer(1, Number.MAX_SAFE_INTEGER);

const MOMENT = /^(?:([0-9]{1,6})([smhd])|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]{5,18}(?:Z|[+-][0-9]{2}:[0-9]{2}))?)$/;
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const instantOr = (other: string, fits: RegExp) => {
  const error = `must be an instant such as 2026-05-01T08:00:00Z, or ${other}`;
  return text().refine((value) => fits.test(value) && MOMENT.test(value) && momentOf(value, 0) !== null, { error });
};

/** An instant, or how long ago it was; `momentOf` reads it. */
export const moment = () => instantOr("how long ago: 90m, 24h, 7d", /./);

/** A fixed one, for what must mean the same when it is asked again. */
export const fixedMoment = () => instantOr("a date", /-/).transform((value) => new Date(value));

export function momentOf(value: string, nowMs: number): Date | null {
  const [, count, unit = ""] = MOMENT.exec(value) ?? [];
  const at = new Date(count === undefined ? value : nowMs - Number(count) * (UNIT_MS[unit] ?? 0));
  return Number.isNaN(at.getTime()) ? null : at;
}

export const instant = () => z.iso.datetime();

/** What is inside of optional, nullable and transformed; of several shapes the first. */
export function innermost(schema: z.ZodType): z.ZodType {
  const def = schema.def as { innerType?: z.ZodType; in?: z.ZodType; options?: readonly z.ZodType[] };
  const inner = def.innerType ?? def.in ?? (schema.type === "union" ? def.options?.[0] : undefined);
  return inner === undefined ? schema : innermost(inner);
}

export const fields = <S extends z.ZodType, const N extends string>(type: S, ...names: readonly N[]) =>
  Object.fromEntries(names.map((name) => [name, type])) as unknown as { readonly [K in N]: S };
export const texts = <const N extends string>(...names: readonly N[]) => fields(z.string(), ...names);
export const textsOrNull = <const N extends string>(...names: readonly N[]) => fields(z.string().nullable(), ...names);
export const integers = <const N extends string>(...names: readonly N[]) => fields(z.int(), ...names);
export const integersOrNull = <const N extends string>(...names: readonly N[]) => fields(z.int().nullable(), ...names);
export const instantsOrNull = <const N extends string>(...names: readonly N[]) => fields(instant().nullable(), ...names);

export const shape = <const S extends z.core.$ZodShape>(id: string, fields: S) => z.strictObject(fields).meta({ id });

export const pageOf = <S extends z.ZodType>(one: S) => z.strictObject({ data: z.array(one), next_cursor: z.string().nullable() });
