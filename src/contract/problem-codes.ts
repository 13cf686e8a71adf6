/**
 * The codes of every refusal of the API: the kernel's, and the few that only HTTP knows; each with its status.
 */
import { ERROR_CODES, type ErrorCode } from "../message/errors.ts";

export const HTTP_CODES = {
  unauthorized: 401,
  cross_origin_refused: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  body_too_large: 413,
  unsupported_media_type: 415,
  expectation_failed: 417,
  misdirected_request: 421,
  invalid_query: 400,
  batch_refused: 422,
  headers_too_large: 431,
  internal_error: 500,
  not_ready: 503,
} as const;

export type ProblemCode = ErrorCode | keyof typeof HTTP_CODES;

export function statusOf(code: ProblemCode): number {
  return code in ERROR_CODES ? ERROR_CODES[code as ErrorCode].status : HTTP_CODES[code as keyof typeof HTTP_CODES];
}

/** A code in words. */
export function titleOf(code: ProblemCode): string {
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
