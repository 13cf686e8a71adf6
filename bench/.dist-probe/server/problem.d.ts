/**
 * Every refusal of the API as RFC 9457 problem+json: a stable code, what happened, and to which request. The kernel's
 * codes come from message/errors; the few that only HTTP knows stand here.
 */
import { type ErrorCode } from "../message/errors.ts";
declare const HTTP_CODES: {
    readonly unauthorized: 401;
    readonly cross_origin_refused: 403;
    readonly not_found: 404;
    readonly method_not_allowed: 405;
    readonly request_timeout: 408;
    readonly body_too_large: 413;
    readonly unsupported_media_type: 415;
    readonly misdirected_request: 421;
    readonly invalid_request: 400;
    readonly invalid_query: 400;
    readonly batch_refused: 422;
    readonly headers_too_large: 431;
    readonly internal_error: 500;
    readonly not_ready: 503;
};
export type ProblemCode = ErrorCode | keyof typeof HTTP_CODES;
/** One of several reasons: which element, which field, what is wrong with it. */
export interface ProblemItem {
    readonly index?: number | undefined;
    readonly field?: string | undefined;
    readonly code: ProblemCode;
    readonly detail: string;
    /** The message that holds the key already. */
    readonly id?: string | undefined;
}
export interface Reply {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
}
/** Members beside the standard ones: `errors`, the id of the message in the way, and the like. */
export interface ProblemExtra {
    readonly errors?: readonly ProblemItem[] | undefined;
    readonly headers?: Readonly<Record<string, string>> | undefined;
    readonly members?: Readonly<Record<string, unknown>> | undefined;
    /** Where the same code means another status, as payload_too_large does inside a batch. */
    readonly status?: number | undefined;
}
export declare const PROBLEM_TYPE = "application/problem+json";
export declare function statusOf(code: ProblemCode): number;
export declare function problem(code: ProblemCode, detail: string, extra?: ProblemExtra): Reply;
/** What a thrown error becomes; undefined when it is none of ours and must be logged, not shown. */
export declare function problemOf(thrown: unknown): Reply | undefined;
/** Adds which request it was about; the path only, because a query may carry what should not be repeated. */
export declare function withInstance(reply: Reply, instance: string): Reply;
export {};
