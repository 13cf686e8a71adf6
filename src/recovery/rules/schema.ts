/** Documents from outside: every mistake is named at once, with its path and what to write instead. */
import { z } from "zod";
import { errorText } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import { wordsOf } from "./code-words.ts";
import { RULE_LIMITS } from "./rule.ts";

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly mistakes: readonly Fault[] };

/** `fault` says what is wrong with a value that is of its type; null: nothing. */
export const checked = <S extends z.ZodType>(schema: S, fault: (value: z.output<S>) => string | null) =>
  schema.check(({ value, issues }) => {
    const message = fault(value);
    if (message !== null) issues.push({ code: "custom", message, input: value });
  });

export const text = (charsMax: number, fault: (value: string) => string | null = () => null) =>
  checked(z.string("must be a text"), (value) => {
    if (value.trim() === "") return "must not be empty";
    if (value.length > charsMax) return `has ${value.length} characters, at most ${charsMax}`;
    return /\p{Cc}/u.test(value) ? "must not contain control characters" : fault(value);
  });

/** An error code in any spelling. */
export const code = () =>
  text(RULE_LIMITS.textCharsMax, (value) => (wordsOf(value).length === 0 ? "has no letter and no digit" : null));

export function number(min: number, max: number, kind: "whole" | "any" = "any") {
  const error = `must be a ${kind === "whole" ? "whole " : ""}number from ${min} to ${max}`;
  return z.number(error).refine((value) => value >= min && value <= max && (kind === "any" || Number.isInteger(value)), error);
}

export const flag = () => z.boolean("must be true or false");

export const oneOf = <const T extends string>(words: readonly T[]) => z.enum(words, `must be one of ${words.join(", ")}`);

/** One to `max` entries. */
export const list = <S extends z.ZodType>(one: S, max: number = RULE_LIMITS.valuesMax) =>
  z
    .array(one, "must be a list")
    .min(1, "must not be empty")
    .max(max, { error: ({ input }) => `has ${(input as unknown[]).length} entries, at most ${max}` });

/** No members but these: `__proto__` is one more unknown member. */
export const object = <const S extends z.core.$ZodShape>(shape: S) =>
  z.strictObject(shape, {
    error: ({ code }) => (code === "unrecognized_keys" ? `known are ${Object.keys(shape).join(", ")}` : "must be an object"),
  });

const ID = /^[a-z0-9][a-z0-9_.-]{0,63}$/;
export const id = () =>
  text(64, (value) => (ID.test(value) ? null : "must be small letters, digits, _ . and -, and begin with one of the first two"));

/** What every document of a book has. */
export const ENTRY = {
  id: id(),
  version: number(1, RULE_LIMITS.countMax, "whole")
    .nullish()
    .transform((given) => given ?? 1),
  enabled: flag()
    .nullish()
    .transform((given) => given ?? true),
};

/** The mistakes of the whole come before those of its parts. */
export function parse<S extends z.ZodType>(schema: S, value: unknown): Parsed<z.output<S>> {
  const { success, data, error } = schema.safeParse(value);
  if (success) return { ok: true, value: data };
  const mistakes = error.issues
    .sort((a, b) => a.path.length - b.path.length)
    .flatMap((issue) => {
      const field = fieldOf(issue.path);
      if (issue.code !== "unrecognized_keys") return [{ field, detail: issue.message }];
      return issue.keys.map((name) => ({ field, detail: `has an unknown member ${shown(name)}; ${issue.message}` }));
    });
  return { ok: false, mistakes: mistakes.slice(0, RULE_LIMITS.errorsMax) };
}

/** Such as `condition.all[2].code.is[0]`; empty for the whole. */
const fieldOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((at, part) => (typeof part === "number" ? `${at}[${part}]` : [at, part].filter(Boolean).join(".")), "");

export function readJson(source: string): Parsed<unknown> {
  try {
    return { ok: true, value: JSON.parse(source) };
  } catch (error) {
    return { ok: false, mistakes: [{ field: "", detail: `is not JSON: ${errorText(error)}` }] };
  }
}

/** A name from outside, short and with escapes: it may be shown on a terminal. */
export function shown(name: string): string {
  return JSON.stringify(name.length > 40 ? `${name.slice(0, 40)}…` : name);
}
