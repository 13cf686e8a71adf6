/**
 * Every refusal of the API as RFC 9457 problem+json: a stable code, what happened, and to which request. The kernel's
 * codes come from message/errors; the few that only HTTP knows stand here.
 */
import { ERROR_CODES, isMakegoodError } from "../message/errors.js";
const HTTP_CODES = {
    unauthorized: 401,
    cross_origin_refused: 403,
    not_found: 404,
    method_not_allowed: 405,
    request_timeout: 408,
    body_too_large: 413,
    unsupported_media_type: 415,
    misdirected_request: 421,
    invalid_request: 400,
    invalid_query: 400,
    batch_refused: 422,
    headers_too_large: 431,
    internal_error: 500,
    not_ready: 503,
};
export const PROBLEM_TYPE = "application/problem+json";
/** How long a client should wait before it asks a store again that did not answer. */
const RETRY_AFTER_SECONDS = "2";
export function statusOf(code) {
    return code in ERROR_CODES ? ERROR_CODES[code].status : HTTP_CODES[code];
}
export function problem(code, detail, extra = {}) {
    const status = extra.status ?? statusOf(code);
    const words = code.replaceAll("_", " ");
    const body = {
        type: `urn:makegood:error:${code}`,
        title: words.charAt(0).toUpperCase() + words.slice(1),
        status,
        code,
        detail,
        ...extra.members,
        ...(extra.errors ? { errors: extra.errors } : {}),
    };
    const headers = { "content-type": PROBLEM_TYPE, ...extra.headers };
    if (status === 503 || status === 507)
        headers["retry-after"] ??= RETRY_AFTER_SECONDS;
    return { status, headers, body: JSON.stringify(body) };
}
/** Facts of an error that a caller may see, and the member they become. */
const SHOWN = [
    ["id", "id"],
    ["index", "index"],
    ["limit", "limit"],
    ["issues", "issues"],
    ["revision", "revision"],
    ["status", "message_status"],
    ["resolution", "resolution"],
];
/** What a thrown error becomes; undefined when it is none of ours and must be logged, not shown. */
export function problemOf(thrown) {
    if (!isMakegoodError(thrown))
        return undefined;
    const shown = SHOWN.flatMap(([name, shownAs]) => {
        const value = thrown.detail[name];
        return value === undefined ? [] : [[shownAs, value]];
    });
    const members = Object.fromEntries(shown);
    return problem(thrown.code, thrown.message, { members });
}
/** Adds which request it was about; the path only, because a query may carry what should not be repeated. */
export function withInstance(reply, instance) {
    if (reply.headers["content-type"] !== PROBLEM_TYPE)
        return reply;
    return { ...reply, body: `${reply.body.slice(0, -1)},"instance":${JSON.stringify(instance)}}` };
}
//# sourceMappingURL=problem.js.map