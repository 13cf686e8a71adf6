/**
 * What PostgreSQL and the socket say, in our codes. The line that matters most: an error while a commit may be on
 * its way is `outcome_unknown`, never "failed" (a lost reply and a lost request look the same from here).
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import { sqlState } from "../shared/sql-state.ts";

/** Conflicts between statements that are ours to try again: serialization, deadlock, lock timeout, cancelled for a lock. */
export function isTransient(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === "40001" || state === "40P01" || state === "55P03" || state === "57014";
}

export function isMissingPartition(thrown: unknown): boolean {
  return sqlState(thrown) === "23514" && /no partition of relation/.test(errorText(thrown));
}

export function isUniqueViolation(thrown: unknown): boolean {
  return sqlState(thrown) === "23505";
}

/** The connection went away (or never answered) after the statement may have been sent. */
export function isConnectionLoss(thrown: unknown): boolean {
  const state = sqlState(thrown);
  if (/^08|^57P0[123]|^58030$/.test(state)) return true;
  if (["ECONNRESET", "EPIPE", "ETIMEDOUT", "ECONNABORTED"].includes(state)) return true;
  return /Connection terminated|Query read timeout|timeout exceeded|socket|not queryable|server closed the connection/i.test(
    errorText(thrown),
  );
}

/**
 * The server takes no write: it is a standby, or was made read-only. A standby says so of an unlogged table while it plans, before it finds that
 * the statement writes; its text may be in any language.
 */
function isReadOnly(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === "25006" || (state === "0A000" && (thrown as { routine?: unknown }).routine === "get_relation_info");
}

/** The session is of no use any more: its connection is gone, or it was opened read-only and stays so when the server is not. */
export function endsSession(thrown: unknown): boolean {
  return isConnectionLoss(thrown) || isReadOnly(thrown);
}

/** node-postgres gave up before there was a connection: nothing was sent. */
const NOT_CONNECTED = /timeout exceeded when trying to connect|terminated due to connection timeout/;
const UNREACHABLE = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|28P01|28000|3D000|53300|57P03)$/;

/** `wrote`: the statement changes something, so that a lost connection leaves its outcome unknown. */
export function asStoreError(thrown: unknown, during: string, wrote: boolean): unknown {
  if (thrown instanceof MakegoodError) return thrown;
  const state = sqlState(thrown);
  const text = errorText(thrown);
  const fail = (code: ConstructorParameters<typeof MakegoodError>[0], message: string) =>
    new MakegoodError(code, message, { during, sqlState: state || null }, thrown);
  const ended = state === "23514" && /^makegood: leadership_lost: (.*)$/.exec(text)?.[1];
  if (ended) return fail("leadership_lost", `${during}: ${ended}`);
  if (UNREACHABLE.test(state) || NOT_CONNECTED.test(text) || isReadOnly(thrown)) {
    return fail("store_unavailable", `${during}: PostgreSQL cannot be used now (${text})`);
  }
  if (state === "40001") {
    return fail("retry_transaction", `${during}: a concurrent transaction won (${text}); run the whole transaction again`);
  }
  if (state === "53100") return fail("store_full", `${during}: PostgreSQL has no disk space left (${text}); free some`);
  if (state === "42P01" || state === "3F000" || state === "42703" || state === "42883") {
    return fail("schema_outdated", `${during}: the database schema is missing or old (${text}); run \`makegood migrate up\``);
  }
  if (isMissingPartition(thrown)) {
    return fail(
      "clock_out_of_range",
      `${during}: no partition takes this id: the clock of the process that made it is off by days (${text}); correct that clock`,
    );
  }
  if (state === "22021" || state === "22P05" || state === "22P02") {
    return fail("invalid_payload", `${during}: PostgreSQL refuses a value (${text})`);
  }
  if (isConnectionLoss(thrown)) {
    return wrote
      ? fail("outcome_unknown", `${during}: the connection broke before the answer came (${text}); repeat with the same id`)
      : fail("store_unavailable", `${during}: the connection broke (${text})`);
  }
  if (state.startsWith("53") || state.startsWith("57") || isTransient(thrown)) {
    return fail("store_unavailable", `${during}: PostgreSQL is busy or shutting down (${text})`);
  }
  return thrown;
}
