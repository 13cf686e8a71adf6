/**
 * How many a page has: as many as were asked for, within what this page may carry.
 */
import { LIMITS } from "../../message/limits.ts";
import { Refusal } from "../problem.ts";
import { refusal } from "../read-request.ts";

export function limitOf(limit: number | undefined, max: number = LIMITS.pageMax): number {
  if (limit === undefined) return Math.min(LIMITS.pageDefault, max);
  if (limit <= max) return limit;
  const detail = `must be an integer from 1 to ${max} where payloads are shown`;
  throw new Refusal(refusal("invalid_query", { named: [{ field: "limit", detail }], more: 0 }));
}
