/**
 * How many a page has: as many as were asked for, within what this page may carry.
 */
import { LIMITS } from "../../message/limits.ts";
import { refusalOf } from "../read-request.ts";

export function limited<Q extends { readonly limit?: number | undefined }>(query: Q, max: number = LIMITS.pageMax) {
  const { limit = Math.min(LIMITS.pageDefault, max) } = query;
  if (limit > max) throw refusalOf("invalid_query", "limit", `must be an integer from 1 to ${max} where payloads are shown`);
  return { ...query, limit };
}
