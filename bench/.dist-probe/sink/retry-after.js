/**
 * Reads a Retry-After header: seconds or an HTTP date, as milliseconds from now, never negative. What makes no sense is
 * ignored; what is too long is clamped by decide(), not here.
 */
const SECONDS = /^[+-]?\d{1,15}(?:\.\d{1,9})?$/;
// IMF-fixdate, RFC 850 and asctime: Date.parse alone would also read "retry 5" as a date.
const HTTP_DATE = /^[A-Z][a-z]{2,8},? [\dA-Za-z :-]{15,30}$/;
export function retryAfterMs(text, wallMs) {
    if (text === null)
        return undefined;
    const value = text.trim();
    if (SECONDS.test(value))
        return Math.max(0, Math.round(Number(value) * 1_000));
    if (!HTTP_DATE.test(value))
        return undefined;
    // asctime has no zone and means GMT; Date.parse would take the zone of this machine.
    const at = Date.parse(value.endsWith("GMT") ? value : `${value} GMT`);
    return Number.isNaN(at) ? undefined : Math.max(0, at - wallMs);
}
//# sourceMappingURL=retry-after.js.map