/** Reads a signature from untrusted JSON: every mistake is named at once, and every pattern is one of RE2 below its limits. */
import type { Parsed } from "../rules/book.ts";
import { wordsOf } from "../rules/code-words.ts";
import { Mistakes, shown } from "../rules/mistakes.ts";
import { readEntry } from "../rules/parse-rule.ts";
import { RULE_LIMITS } from "../rules/rule.ts";
import { CAUSES, type Cause } from "./cause.ts";
import { compilePhrase, PHRASE_LIMITS } from "./phrase.ts";
import { SIGNATURE_LIMITS, type Signature } from "./signature.ts";

const MEMBERS = ["id", "version", "enabled", "cause", "detail", "certainty", "says", "codes", "words", "status"];
const DETAIL = /^[a-z][a-z_]{0,31}$/;

export function parseSignature(value: unknown): Parsed<Signature> {
  const mistakes = new Mistakes();
  const signature = read(value, mistakes);
  return signature === undefined || mistakes.some ? { ok: false, mistakes: mistakes.list } : { ok: true, value: signature };
}

function read(value: unknown, mistakes: Mistakes): Signature | undefined {
  const given = mistakes.object(value, "", MEMBERS);
  if (given === undefined) return undefined;
  const entry = readEntry(given, "", mistakes);
  const cause = CAUSES.find((one) => one === given.cause && one !== "unknown");
  if (cause === undefined) mistakes.add("cause", `must be one of ${CAUSES.filter((one) => one !== "unknown").join(", ")}`);
  const detail = given.detail ?? undefined;
  if (detail !== undefined && !(typeof detail === "string" && DETAIL.test(detail)))
    mistakes.add("detail", "must be a word of small letters and _");
  const certainty = mistakes.number(given.certainty, "certainty", 0, 1, false);
  const says = mistakes.text(given.says, "says", RULE_LIMITS.textCharsMax);
  const signs = {
    ...list(given, "codes", mistakes, (one, at) => {
      const text = mistakes.text(one, at, RULE_LIMITS.textCharsMax);
      if (text !== undefined && wordsOf(text).length === 0) mistakes.add(at, "has no letter and no digit");
      return text;
    }),
    ...list(given, "words", mistakes, (one, at) => words(one, at, mistakes)),
    ...list(given, "status", mistakes, (one, at) => mistakes.number(one, at, 100, 599, true)),
  };
  if (Object.keys(signs).length === 0) mistakes.add("", "needs one of codes, words, status");
  if (entry === undefined || cause === undefined || certainty === undefined || says === undefined) return undefined;
  return {
    ...entry,
    cause: cause as Cause,
    ...(detail === undefined ? {} : { detail: String(detail) }),
    certainty,
    says,
    ...signs,
  };
}

function list<T>(
  given: Readonly<Record<string, unknown>>,
  name: "codes" | "words" | "status",
  mistakes: Mistakes,
  read: (one: unknown, at: string) => T | undefined,
): Record<string, readonly T[]> {
  if (given[name] === undefined) return {};
  const all = mistakes.array(given[name], name, SIGNATURE_LIMITS.listMax) ?? [];
  return { [name]: all.map((one, i) => read(one, `${name}[${i}]`)).filter((one) => one !== undefined) };
}

function words(value: unknown, at: string, mistakes: Mistakes): string | undefined {
  const text = mistakes.text(value, at, PHRASE_LIMITS.patternCharsMax);
  if (text === undefined) return undefined;
  const compiled = compilePhrase(text);
  if (!compiled.ok) mistakes.add(at, `${compiled.error}: ${shown(text)}`);
  return text;
}
