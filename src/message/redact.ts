/**
 * Errors fit to be kept and shown: one line, at most 256 characters, without addresses' passwords or tokens.
 */

import { oneLine } from "./one-line.ts";
import type { Outcome } from "./outcome.ts";

export const ERROR_CHARS_MAX = 256;

const SECRETS: readonly [RegExp, string][] = [
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, "$1[redacted]@"],
  [/\b(bearer|basic)\s+[\w.~+/=-]{4,}/gi, "$1 [redacted]"],
  [/\b(password|passwd|pwd|secret|token|api[_-]?key|authorization)(["']?\s*[=:]\s*["']?)[^\s"',;&]+/gi, "$1$2[redacted]"],
];

export function redact(text: string): string {
  let safe = text;
  for (const [pattern, by] of SECRETS) safe = safe.replace(pattern, by);
  return oneLine(safe, ERROR_CHARS_MAX);
}

/** The outcome with its error redacted. */
export function redacted<T extends Outcome>(outcome: T): T {
  return "error" in outcome ? { ...outcome, error: redact(outcome.error) } : outcome;
}
