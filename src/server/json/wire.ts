/** Between the contract's words and the kernel's: a field is the member of that name in camelCase, a date its ISO text. */
import type { z } from "zod";
import { innermost } from "../../contract/values.ts";
import { isObject } from "../../message/json.ts";

type Camel<T extends string> = T extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : T;
type Source<T> = T extends string
  ? T | Date
  : T extends readonly (infer E)[]
    ? readonly Source<E>[]
    : T extends object
      ? SourceOf<T>
      : T;
type SourceOf<O> = { readonly [K in keyof O as Camel<K & string>]: Source<O[K]> };

export type Own<T> = T extends readonly (infer E)[]
  ? Own<E>[]
  : T extends Date
    ? T
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

type Inner = { readonly type: string; readonly element?: z.ZodType; readonly shape?: Readonly<Record<string, z.ZodType>> };
const defOf = (schema: z.ZodType): Inner => innermost(schema).def as Inner;

export const wireOf = <S extends z.ZodObject>(schema: S, source: SourceOf<z.output<S>>): z.output<S> =>
  outward(schema, source) as z.output<S>;

function outward(schema: z.ZodType, value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Date) return value.toISOString();
  const { element, shape } = defOf(schema);
  if (element) return (value as unknown[]).map((each) => outward(element, each));
  if (!shape) return value;
  const object: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(shape)) {
    const member = outward(field, (value as Readonly<Record<string, unknown>>)[ownName(name)]);
    if (member !== undefined || field._zod.optout !== "optional") object[name] = member ?? null;
  }
  return object;
}

export function ownOf<T>(schema: z.ZodType, value: T): Own<T> {
  const { element, shape } = defOf(schema);
  if (element && Array.isArray(value)) return value.map((each) => ownOf(element, each)) as Own<T>;
  if (!shape || value === null || typeof value !== "object") return value as Own<T>;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const named = members.map(([name, member]) => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    return field ? [ownName(name), ownOf(field, member)] : [name, member];
  });
  return Object.fromEntries(named) as Own<T>;
}

/** What a text of a query or of the environment stands for where a number, a flag or a list is wanted; else it stays a text. */
export function textValue(text: string, schema: z.ZodType): unknown {
  const { type } = defOf(schema);
  if (type === "number" && /^-?[0-9]{1,16}(\.[0-9]{1,16})?$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return type === "array" ? text.split(",").flatMap((one) => one.trim() || []) : text;
}
