export function parsed(value) {
    return { ok: true, value };
}
export function refused(reply) {
    return { ok: false, reply };
}
/** `body` is JSON text already: payloads go out as they came in, never through JSON.stringify. */
export function jsonText(status, body, headers = {}) {
    return { status, headers: { "content-type": "application/json", ...headers }, body };
}
export function json(status, value, headers = {}) {
    return jsonText(status, JSON.stringify(value), headers);
}
//# sourceMappingURL=http.js.map