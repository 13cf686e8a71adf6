/**
 * The one error class of the package and the table of its codes. An expected result is a value; what is thrown says
 * what happened, to which id, and what to do about it. The codes are stable: the HTTP API and the CLI show the same ones.
 */

/** code → HTTP status of the problem it becomes, and whether the same call may succeed later. */
export const ERROR_CODES = {
  invalid_message: { status: 400, retryable: false },
  invalid_payload: { status: 400, retryable: false },
  payload_too_large: { status: 413, retryable: false },
  payload_rejected_by_schema: { status: 422, retryable: false },
  key_too_long: { status: 400, retryable: false },
  key_conflict: { status: 422, retryable: false },
  unknown_topic: { status: 422, retryable: false },
  invalid_topic: { status: 400, retryable: false },
  topic_not_found: { status: 404, retryable: false },
  topic_read_only: { status: 409, retryable: false },
  topic_in_use: { status: 409, retryable: false },
  message_not_found: { status: 404, retryable: false },
  wrong_state: { status: 409, retryable: false },
  revision_conflict: { status: 409, retryable: true },
  not_a_transaction: { status: 500, retryable: false },
  /** The caller's transaction is one of another database than the store's. */
  wrong_database: { status: 500, retryable: false },
  retry_transaction: { status: 503, retryable: true },
  outcome_unknown: { status: 503, retryable: true },
  clock_out_of_range: { status: 500, retryable: false },
  store_unavailable: { status: 503, retryable: true },
  store_full: { status: 507, retryable: true },
  schema_outdated: { status: 503, retryable: true },
  /** The database has none of our tables. */
  not_initialised: { status: 503, retryable: true },
  needs_postgres: { status: 501, retryable: false },
  /** A request of the recovery engine that does not fit; `detail.errors` has every fault as { field, detail }. */
  invalid_request: { status: 400, retryable: false },
  invalid_rule: { status: 400, retryable: false },
  invalid_cause: { status: 400, retryable: false },
  invalid_action: { status: 400, retryable: false },
  group_not_found: { status: 404, retryable: false },
  candidate_not_found: { status: 404, retryable: false },
  record_not_found: { status: 404, retryable: false },
  hold_not_found: { status: 404, retryable: false },
  /** A legal hold keeps the record. */
  record_held: { status: 409, retryable: false },
  /** The record is in no block of evidence yet. */
  not_sealed: { status: 409, retryable: true },
  rule_not_found: { status: 404, retryable: false },
  cause_not_found: { status: 404, retryable: false },
  action_not_found: { status: 404, retryable: false },
  redrive_not_found: { status: 404, retryable: false },
  /** A candidate, rule, action or redrive has moved on since it was read. */
  version_conflict: { status: 409, retryable: true },
  /** Nobody has approved it, too few have, or the approval has lapsed. */
  approval_needed: { status: 409, retryable: false },
  /** The action cannot be done here, or is forbidden. */
  action_refused: { status: 409, retryable: false },
  over_budget: { status: 429, retryable: true },
  /** `confirm` must be the number of messages that were seen. */
  confirmation_needed: { status: 409, retryable: false },
  nothing_selected: { status: 409, retryable: false },
  /** Nobody is known to deliver the topic of a message that is to be replayed. */
  nobody_delivers: { status: 409, retryable: false },
  /** A copy of the message is on its way to another receiver; sent as well, both would get it. */
  carried: { status: 409, retryable: true },
  /** A job's write came after its leadership had ended: nothing was written, and the next leader does it. */
  leadership_lost: { status: 409, retryable: true },
  job_not_found: { status: 404, retryable: false },
  archive_not_found: { status: 404, retryable: false },
  /** MAKEGOOD_STREAMS does not name it. */
  stream_not_found: { status: 404, retryable: false },
  /** The stream has no such entry, or not any more. */
  entry_not_found: { status: 404, retryable: false },
  durable_entries_left: { status: 500, retryable: false },
  invalid_config: { status: 500, retryable: false },
  embedded_failed: { status: 500, retryable: false },
  sink_refused: { status: 400, retryable: false },
  closed: { status: 503, retryable: false },
  invariant_violated: { status: 500, retryable: false },
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export class MakegoodError extends Error {
  override readonly name = "MakegoodError";
  readonly code: ErrorCode;
  readonly retryable: boolean;
  /** Facts a program may want: the id, the index in a batch, the limit that was passed. */
  readonly detail: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, detail: Record<string, unknown> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = ERROR_CODES[code].retryable;
    this.detail = detail;
  }
}

export function isMakegoodError(value: unknown): value is MakegoodError {
  return value instanceof MakegoodError;
}

/** The text of anything that was thrown, for an attempt's error column. */
export function errorText(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  return String(thrown);
}
