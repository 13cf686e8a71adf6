/**
 * What a caller hands to finalize(), read without trust: every input becomes a request that can be stored and shown, with the
 * reason why it can never be settled if there is one. Nothing here throws, on any input. And what comes back: there are exactly three
 * outcomes of a finalize, and every replay of a pass is counted exactly once.
 */
import { errorText } from "../../message/errors.ts";
import { isObject } from "../../message/json.ts";
import { LIMITS } from "../../message/limits.ts";
import { oneLine } from "../../message/one-line.ts";
import { textProblem } from "../../message/validate.ts";
import type { DLQRequest } from "../../store/redis/dlq-port/dlq-store.ts";
import { MICRO_CHARS_MAX, parseMicro } from "./money.ts";

/** The words of the seeds; the cost is an integer in decimal text. */
export type FinalizeRequest = DLQRequest;

export type FinalizeResult =
  | { readonly ok: true; readonly status: "finalized" | "idempotent" }
  | {
      readonly ok: false;
      readonly status: "dlq";
      readonly reason: string;
      /** Under which id it is kept: the reservation id, or one that was made up for a request without a usable one. */
      readonly id: string;
      /** Where it is now, and what it survives there. */
      readonly stored: string;
      readonly survives: "power-loss" | "process-crash" | "nothing";
      /** A person has closed this reservation: nothing was kept again. */
      readonly closed?: "resolved" | "discarded" | undefined;
    };

/** `replayed` = `succeeded` + `failed` + `terminal`: every attempt of the pass, by what became of the obligation. */
export interface ReplayCounts {
  readonly replayed: number;
  readonly succeeded: number;
  /** Still open: it waits for its next attempt. */
  readonly failed: number;
  /** Became a dead letter: its attempts ended, or it was rejected for good. */
  readonly terminal: number;
}

export interface Obligation {
  readonly request: FinalizeRequest;
  /** Why it can never be settled; null when it can. Then `reservation_id` is made up, so that two of them never share one. */
  readonly problem: string | null;
}

const FIELD_BYTES_MAX = 1_000;

/** `newId`: for what came without an identity of its own. */
export function readRequest(input: unknown, newId: () => string): Obligation {
  try {
    const { reservation_id, tenant_id, actual_cost_micro, trace_id } = isObject(input) ? input : {};
    const fields = { reservation_id, tenant_id, actual_cost_micro, trace_id };
    const problem =
      idProblem("reservation_id", reservation_id, LIMITS.keyBytesMax) ??
      idProblem("tenant_id", tenant_id, LIMITS.tenantIdBytesMax) ??
      costProblem(actual_cost_micro);
    if (problem !== null) return unidentified(fields, problem, newId);
    return { request: { ...(fields as FinalizeRequest), trace_id: shown(trace_id) }, problem };
  } catch (thrown) {
    // A getter that throws, a revoked proxy: there is nothing to read, but the caller still has an obligation.
    return unidentified({}, `the request cannot be read: ${errorText(thrown)}`, newId);
  }
}

function idProblem(name: string, value: unknown, bytesMax: number): string | null {
  const problem = textProblem(value, bytesMax);
  return problem === null ? null : `${name} ${value === undefined ? "is missing" : problem}`;
}

function costProblem(value: unknown): string | null {
  if (parseMicro(value) !== null) return null;
  return `actual_cost_micro must be a whole number in decimal text, without sign or leading zeros, at most ${MICRO_CHARS_MAX} digits`;
}

function unidentified(fields: Partial<Record<keyof FinalizeRequest, unknown>>, problem: string, newId: () => string): Obligation {
  const given = shown(fields.reservation_id);
  const request = {
    reservation_id: `invalid-${newId()}`,
    tenant_id: shown(fields.tenant_id),
    actual_cost_micro: shown(fields.actual_cost_micro),
    trace_id: shown(fields.trace_id),
  };
  return { request, problem: given === "" ? problem : `${problem} (reservation_id ${given})` };
}

/** Any value as one bounded line that every store and log can hold. */
function shown(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "object" || typeof value === "function" || typeof value === "symbol") return `(${typeof value})`;
  return oneLine(String(value), FIELD_BYTES_MAX);
}
