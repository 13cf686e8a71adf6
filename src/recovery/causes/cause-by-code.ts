/** The cause of a failure as far as its code alone tells. Stands in where nothing reads the text. */
import { readCode } from "../rules/code-words.ts";
import type { Cause } from "./cause.ts";

const BY_CLASS: readonly (readonly [string, Cause])[] = [
  ["AUTH", "auth_or_permission"],
  ["TIMEOUT", "timeout"],
  ["RATE_LIMIT", "overload_or_quota"],
  ["BUDGET", "overload_or_quota"],
  ["CONNECTION", "network"],
  ["HTTP_5XX", "outage"],
];

export function causeByCode(failure: { readonly errorCode: string; readonly errorMessage?: string }): { readonly cause: Cause } {
  const { codes, classes } = readCode(failure.errorCode, failure.errorMessage ?? "");
  const cause = BY_CLASS.find(([name]) => classes.has(name) || codes.has(name))?.[1];
  return { cause: cause ?? "unknown" };
}
