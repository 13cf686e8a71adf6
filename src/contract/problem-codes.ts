/** The codes of every refusal, the kernel's and those that only HTTP knows, and the shape of a refusal (RFC 9457). */
import { z } from "zod";
import { ERROR_CODES, type ErrorCode } from "../message/errors.ts";
import { FAULTS_NAMED_MAX } from "./faults.ts";
import * as v from "./values.ts";

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

export function titleOf(code: ProblemCode): string {
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Which element or field is wrong, or which message holds the key already. */
const place = z.object({ index: z.int(), ...v.texts("field", "id") }).partial();
export type ProblemItem = Readonly<z.output<typeof place>> & { readonly code: ProblemCode; readonly detail: string };
export const problemShape = z
  .looseObject({
    ...v.texts("type", "title", "code", "detail"),
    status: z.int(),
    instance: z.string().optional(),
    errors: z
      .array(place.extend(v.texts("code", "detail")))
      .max(FAULTS_NAMED_MAX)
      .optional(),
    errors_more: z.int().optional().describe("how many faults there are besides those in errors"),
  })
  .meta({ id: "Problem" });
