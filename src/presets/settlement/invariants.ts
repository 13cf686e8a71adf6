/**
 * The five invariants of settlement, each with its words and an assertion that a test or a running service can make. Durable
 * mode: the store is connected and its persistence verified or attested, or a journal below it has the entry; degraded mode:
 * anything less. An assertion that fails names the invariant, the reservation and what was seen.
 */
import { MakegoodError } from "../../message/errors.ts";
import { parseMicro } from "./money.ts";
import type { FinalizeResult } from "./request.ts";

export const BILLING_INVARIANTS = {
  INV_1_COMPLETENESS: "Every finalize() ends in exactly one of finalized, idempotent and dlq, and never throws.",
  INV_2_PERSISTENCE_DURABLE:
    "In durable mode the outcome dlq means that the obligation can be read back by its id, also after a restart.",
  INV_2D_PERSISTENCE_DEGRADED:
    "In degraded mode the outcome dlq means that the obligation is in memory and, whole, in the log at ERROR, and that health says not durable.",
  INV_3_IDEMPOTENCY:
    "A second finalize of a settled reservation is idempotent: the key is the reservation id on every path, and the receiver has one effect per key.",
  INV_4_COST_IMMUTABILITY: "The cost is the same text from the first call to the last replay; no floating point touches it.",
  INV_5_BOUNDED_RETRY:
    "An obligation is replayed at most maxRetries times, after 1, 2, 4, 8 and 10 minutes, and then is a dead letter.",
} as const;

export type InvariantName = keyof typeof BILLING_INVARIANTS;

/** INV-1. */
export function assertCompleteness(result: FinalizeResult): void {
  const { ok, status } = result as { readonly ok: unknown; readonly status: unknown };
  const good = ok === true ? status === "finalized" || status === "idempotent" : ok === false && status === "dlq";
  if (!good) fail("INV_1_COMPLETENESS", `ok ${String(ok)} with status ${String(status)}`);
}

/** INV-2: what is read back after the outcome, and after a restart. */
export function assertPersisted(result: FinalizeResult, readBack: { readonly actual_cost_micro: string } | null): void {
  if (!result.ok && readBack === null) fail("INV_2_PERSISTENCE_DURABLE", `${result.id} cannot be read back`);
}

/** INV-2d: what the log holds at ERROR, and what health says. */
export function assertDegraded(result: FinalizeResult, errorLines: readonly string[], durable: boolean): void {
  if (result.ok) return;
  if (!errorLines.some((line) => line.includes(result.id))) fail("INV_2D_PERSISTENCE_DEGRADED", `${result.id} is not in the log`);
  if (durable) fail("INV_2D_PERSISTENCE_DEGRADED", "health says durable");
}

/** INV-3: `effects` is what the receiver did for this reservation. */
export function assertIdempotent(second: FinalizeResult, effects: number): void {
  if (second.ok && second.status !== "idempotent") fail("INV_3_IDEMPOTENCY", `the second finalize says ${second.status}`);
  if (effects > 1) fail("INV_3_IDEMPOTENCY", `the receiver had ${effects} effects`);
}

/** INV-4: every text in which the cost was seen, wherever that was. */
export function assertCostUnchanged(given: string, seen: readonly string[]): void {
  const other = seen.find((text) => text !== given);
  if (other !== undefined) fail("INV_4_COST_IMMUTABILITY", `${given} became ${other}`);
  if (parseMicro(given) === null) fail("INV_4_COST_IMMUTABILITY", `${given} is not a canonical amount`);
}

/** INV-5: `calls` is how often the receiver was called for one obligation, the direct try included. */
export function assertBoundedRetry(calls: number, maxRetries: number): void {
  if (calls > maxRetries + 1) fail("INV_5_BOUNDED_RETRY", `${calls - 1} replays, ${maxRetries} are allowed`);
}

function fail(name: InvariantName, seen: string): never {
  throw new MakegoodError("invariant_violated", `${name}: ${BILLING_INVARIANTS[name]} Seen: ${seen}.`, { invariant: name });
}
