/**
 * The one error class of the package and the table of its codes. An expected result is a value; what is thrown says
 * what happened, to which id, and what to do about it. The codes are stable: the HTTP API and the CLI show the same ones.
 */
/** code → HTTP status of the problem it becomes, and whether the same call may succeed later. */
export declare const ERROR_CODES: {
    readonly invalid_message: {
        readonly status: 400;
        readonly retryable: false;
    };
    readonly invalid_payload: {
        readonly status: 400;
        readonly retryable: false;
    };
    readonly payload_too_large: {
        readonly status: 413;
        readonly retryable: false;
    };
    readonly payload_rejected_by_schema: {
        readonly status: 422;
        readonly retryable: false;
    };
    readonly key_too_long: {
        readonly status: 400;
        readonly retryable: false;
    };
    readonly key_conflict: {
        readonly status: 422;
        readonly retryable: false;
    };
    readonly unknown_topic: {
        readonly status: 422;
        readonly retryable: false;
    };
    readonly invalid_topic: {
        readonly status: 400;
        readonly retryable: false;
    };
    readonly topic_not_found: {
        readonly status: 404;
        readonly retryable: false;
    };
    readonly topic_read_only: {
        readonly status: 409;
        readonly retryable: false;
    };
    readonly topic_in_use: {
        readonly status: 409;
        readonly retryable: false;
    };
    readonly message_not_found: {
        readonly status: 404;
        readonly retryable: false;
    };
    readonly wrong_state: {
        readonly status: 409;
        readonly retryable: false;
    };
    readonly revision_conflict: {
        readonly status: 409;
        readonly retryable: true;
    };
    readonly not_a_transaction: {
        readonly status: 500;
        readonly retryable: false;
    };
    readonly retry_transaction: {
        readonly status: 503;
        readonly retryable: true;
    };
    readonly outcome_unknown: {
        readonly status: 503;
        readonly retryable: true;
    };
    readonly clock_out_of_range: {
        readonly status: 500;
        readonly retryable: false;
    };
    readonly store_unavailable: {
        readonly status: 503;
        readonly retryable: true;
    };
    readonly store_full: {
        readonly status: 507;
        readonly retryable: true;
    };
    readonly schema_outdated: {
        readonly status: 503;
        readonly retryable: true;
    };
    readonly invalid_config: {
        readonly status: 500;
        readonly retryable: false;
    };
    readonly embedded_failed: {
        readonly status: 500;
        readonly retryable: false;
    };
    readonly sink_refused: {
        readonly status: 400;
        readonly retryable: false;
    };
    readonly closed: {
        readonly status: 503;
        readonly retryable: false;
    };
};
export type ErrorCode = keyof typeof ERROR_CODES;
export declare class MakegoodError extends Error {
    readonly name = "MakegoodError";
    readonly code: ErrorCode;
    readonly retryable: boolean;
    /** Facts a program may want: the id, the index in a batch, the limit that was passed. */
    readonly detail: Readonly<Record<string, unknown>>;
    constructor(code: ErrorCode, message: string, detail?: Record<string, unknown>, cause?: unknown);
}
export declare function isMakegoodError(value: unknown): value is MakegoodError;
/** The text of anything that was thrown, for an attempt's error column. */
export declare function errorText(thrown: unknown): string;
