/**
 * What a failed write to the audit seam means for its record. What a database says is never repeated, only its class (DA-25).
 */
import { isMakegoodError } from "../../message/errors.ts";
import type { Outcome } from "../../message/outcome.ts";

/** Not there at the moment, for any record: it waits and spends no attempt. */
const AWAY: Readonly<Record<string, string>> = {
  store_unavailable: "the audit database cannot be reached",
  outcome_unknown: "the audit database did not answer; whether the record was stored is not known",
  retry_transaction: "a concurrent transaction won",
  schema_outdated: "the audit tables are missing or old: run `makegood migrate up`",
  store_full: "the audit database has no space left",
  closed: "the store is closed",
};

/** What a failed write to the audit seam means for its record (DA-24): away, never, or an ordinary failure. */
export function outcomeOfWrite(thrown: unknown): Outcome {
  if (isMakegoodError(thrown)) {
    const away = AWAY[thrown.code];
    if (away !== undefined) {
      const alert = thrown.code === "store_full" || thrown.code === "schema_outdated";
      return { kind: "retry", code: thrown.code, error: away, outage: true, alert };
    }
    if (!thrown.retryable)
      return { kind: "reject", code: thrown.code, error: `the audit store refuses the record (${thrown.code})` };
    return { kind: "retry", code: thrown.code, error: `the audit store failed (${thrown.code})` };
  }
  const state = sqlState(thrown);
  const error = `the audit database refuses the write (SQLSTATE ${state})`;
  // 22 data exception, 23 constraint violation: the same record will be refused for ever.
  if (/^2[23]/.test(state)) return { kind: "reject", code: `sql_${state}`, error };
  // 28 and 42: a person has changed a right or a table; nothing is wrong with the record.
  if (/^(?:28|42)/.test(state)) return { kind: "retry", code: `sql_${state}`, error, outage: true, alert: true };
  return {
    kind: "retry",
    code: state === "" ? "write_failed" : `sql_${state}`,
    error: state === "" ? "the write failed" : error,
  };
}

function sqlState(thrown: unknown): string {
  const code = typeof thrown === "object" && thrown !== null ? (thrown as { code?: unknown }).code : undefined;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : "";
}
