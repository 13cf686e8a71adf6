/**
 * A signature as data: what a failure looks like whose cause is known. It fits when one of its codes, its words or its statuses does. Of
 * all that fit the most certain one speaks, so what is specific comes before what is general, and a text before a status.
 */
import { z } from "zod";
import { isObject } from "../../message/json.ts";
import { RULE_LIMITS } from "../rules/rule.ts";
import { code, ENTRY, list, number, object, oneOf, parse, shown, text } from "../rules/schema.ts";
import { CAUSES } from "./cause.ts";
import { compilePhrase, PHRASE_LIMITS } from "./phrase.ts";

/** Below this a signature is vague: what rules make of it is worth less. */
export const SURE = 0.7;

const DETAIL = "must be a word of small letters and _";

const words = text(PHRASE_LIMITS.patternCharsMax, (source) => {
  const compiled = compilePhrase(source);
  return compiled.ok ? null : `${compiled.error}: ${shown(source)}`;
});

const SIGNATURE = object({
  ...ENTRY,
  cause: oneOf(CAUSES.filter((cause) => cause !== "unknown")),
  /** Which kind of this cause, where the remedy differs: an outage that is `passing`. */
  detail: z
    .string(DETAIL)
    .regex(/^[a-z][a-z_]{0,31}$/, DETAIL)
    .nullish()
    .transform((given) => given ?? undefined),
  /** How often the cause is the right one where this fits: 0 to 1. */
  certainty: number(0, 1),
  /** For people: what it means when this fits. */
  says: text(RULE_LIMITS.textCharsMax),
  /** Whole codes in any spelling: the code itself, or a member of a structured text such as `error.type`, or a SQLSTATE in it. */
  codes: list(code()).optional(),
  /** RE2 on the words of the text: small letters and digits with one space between; a sentence or a member is a line. `… ` is up to four words. */
  words: list(words).optional(),
  /** HTTP statuses. */
  status: list(number(100, 599, "whole")).optional(),
}).refine(({ codes, words, status }) => codes ?? words ?? status, {
  error: "needs one of codes, words, status",
  when: ({ value }) => isObject(value),
});

export type Signature = Readonly<z.output<typeof SIGNATURE>>;

export const parseSignature = (value: unknown) => parse(SIGNATURE, value);

type Signs = Pick<Signature, "codes" | "words" | "status">;

/** A shipped signature; `cause` may name a detail: `outage.passing`. */
export function sign(id: string, cause: string, certainty: number, says: string, signs: Signs): Signature {
  const [name, detail] = cause.split(".") as [Signature["cause"], string?];
  return { id, version: 1, enabled: true, cause: name, detail, certainty, says, ...signs };
}

/**
 * Shipped signatures as text. A line at the margin begins one: its id, its cause, how certain it is, and what it says. Indented below it
 * stand its codes, in one line, and its words.
 */
export function signatures(family: string): Signature[] {
  const all = family.trim().split(/\n(?! )/);
  return all.map((one) => {
    const [head = "", ...signs] = one.split("\n  ");
    const [id = "", cause = "", certainty, ...says] = head.split(" ");
    const isCodes = (line: string): boolean => line.startsWith("codes: ");
    const codes = signs.filter(isCodes).flatMap((line) => line.split(" ").slice(1));
    const words = signs.filter((line) => !isCodes(line));
    return sign(id, cause, Number(certainty), says.join(" "), {
      ...(codes.length > 0 && { codes }),
      ...(words.length > 0 && { words }),
    });
  });
}
