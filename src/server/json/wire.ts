/**
 * Between the contract's words and the kernel's, both ways and by the schema: a field is the member of the same name in camelCase, also in
 * what is nested, and a date is its ISO text. What has no such member, or another value, is given beside it; anything that is missing does not
 * compile.
 */
import type { z } from "zod";
import { isObject } from "../../message/json.ts";

type Camel<T extends string> = T extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : T;
type Source<T> = T extends string
  ? T | Date
  : T extends readonly (infer E)[]
    ? readonly Source<E>[]
    : T extends object
      ? SourceOf<T>
      : T;
type SourceOf<O, G = object> = { readonly [K in keyof O as K extends keyof G ? never : Camel<K & string>]: Source<O[K]> };

/** What was read of a request, in the kernel's words. */
export type Own<T> = T extends readonly (infer E)[]
  ? Own<E>[]
  : T extends object
    ? { [K in keyof T as Camel<K & string>]: Own<T[K]> }
    : T;

const ownName = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
export const wireName = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Members that no schema lists, kept in our own words: outside they are snake_case, too. */
export function inWireNames<T>(value: T): T extends object ? Record<string, unknown> : T;
export function inWireNames(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [wireName(name), member ?? null]));
}

interface Def {
  readonly type: string;
  readonly innerType?: z.core.$ZodType;
  readonly in?: z.core.$ZodType;
  readonly element?: z.core.$ZodType;
}

/** What is inside of optional, nullable and transformed. */
function innerOf(schema: z.core.$ZodType): { readonly schema: z.core.$ZodType; readonly def: Def } {
  const def = schema._zod.def as Def;
  const inner = def.innerType ?? def.in;
  return inner === undefined ? { schema, def } : innerOf(inner);
}

interface Field {
  readonly wire: string;
  readonly own: string;
  readonly optional: boolean;
  readonly schema: z.core.$ZodType;
}

const known = new WeakMap<z.core.$ZodType, readonly Field[]>();

function fieldsOf(schema: z.core.$ZodType): readonly Field[] {
  const found = known.get(schema);
  if (found) return found;
  const fields = Object.entries((schema as z.ZodObject).shape).map(([wire, one]) => {
    return { wire, own: ownName(wire), optional: one._zod.optout === "optional", schema: one };
  });
  known.set(schema, fields);
  return fields;
}

type Members = Readonly<Record<string, unknown>>;

export function wireOf<S extends z.ZodObject, const G extends Partial<z.output<S>> = object>(
  schema: S,
  source: SourceOf<z.output<S>, G>,
  given: G = {} as G,
): z.output<S> {
  return membersOut(schema, source as Members, given) as z.output<S>;
}

function membersOut(schema: z.core.$ZodType, source: Members, given: Members): object {
  const object: Record<string, unknown> = {};
  for (const { wire, own, optional, schema: one } of fieldsOf(schema)) {
    const value = Object.hasOwn(given, wire) ? given[wire] : outward(one, source[own]);
    if (value !== undefined || !optional) object[wire] = value ?? null;
  }
  return object;
}

function outward(one: z.core.$ZodType, value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Date) return value.toISOString();
  const { schema, def } = innerOf(one);
  if (def.type === "array" && def.element)
    return (value as unknown[]).map((each) => outward(def.element as z.core.$ZodType, each));
  return def.type === "object" ? membersOut(schema, value as Members, {}) : value;
}

/** A value that fits the schema, with the kernel's names for its fields; what is undefined is left out. */
export function ownOf<T>(one: z.core.$ZodType, value: T): Own<T> {
  const { schema, def } = innerOf(one);
  if (def.type === "array" && def.element && Array.isArray(value))
    return value.map((each) => ownOf(def.element as z.core.$ZodType, each)) as Own<T>;
  if (def.type !== "object" || value === null || typeof value !== "object") return value as Own<T>;
  const { shape } = schema as z.ZodObject;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const named = members.map(([name, member]) => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    return field ? [ownName(name), ownOf(field, member)] : [name, member];
  });
  return Object.fromEntries(named) as Own<T>;
}

/** What a text of a query or of the environment stands for where a number, a flag or a list is wanted; else it stays a text. */
export function textValue(text: string, schema: z.core.$ZodType): unknown {
  const { type } = innerOf(schema).def;
  if (type === "number" && /^-?[0-9]{1,16}(\.[0-9]{1,16})?$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  if (type !== "array") return text;
  return text.split(",").flatMap((one) => one.trim() || []);
}
