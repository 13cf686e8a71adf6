/**
 * From the kernel's words to the contract's: a field of a shape is the member of the same name in camelCase, and a date is its ISO text. What
 * has no such member, or another value, is given beside it; anything that is missing does not compile.
 */
import type { z } from "zod";

type Camel<T extends string> = T extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : T;
type Held<T> = T extends string ? T | Date : T;
type SourceOf<O, G> = { readonly [K in Exclude<keyof O, keyof G> & string as Camel<K>]: Held<O[K]> };

interface Field {
  readonly wire: string;
  readonly own: string;
  readonly optional: boolean;
}

const known = new WeakMap<z.ZodObject, readonly Field[]>();

function fieldsOf(schema: z.ZodObject): readonly Field[] {
  const found = known.get(schema);
  if (found) return found;
  const fields = Object.entries(schema.shape).map(([wire, shape]) => {
    const own = wire.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    return { wire, own, optional: shape._zod.optout === "optional" };
  });
  known.set(schema, fields);
  return fields;
}

export function wireOf<S extends z.ZodObject, const G extends Partial<z.output<S>>>(
  schema: S,
  source: SourceOf<z.output<S>, G>,
  given: G,
): z.output<S> {
  const object: Record<string, unknown> = {};
  for (const { wire, own, optional } of fieldsOf(schema)) {
    const value = Object.hasOwn(given, wire) ? given[wire] : (source as Readonly<Record<string, unknown>>)[own];
    if (value === undefined && optional) continue;
    object[wire] = value instanceof Date ? value.toISOString() : (value ?? null);
  }
  return object as z.output<S>;
}
