export const LOG_LEVELS = ["debug", "info", "warn", "error"];
/** A log line is for reading; what is longer than this is cut. */
const VALUE_CHARS_MAX = 4_096;
// C0, DEL and C1 steer terminals; line separators break lines; bidi marks reorder what a person reads.
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;
/** The same text with everything that could steer a terminal or break a line spelled out as `\uXXXX`. */
export function escapeControl(text) {
    return text.replace(UNSAFE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
export function createLog({ clock, format, level = "info", write }) {
    const threshold = LOG_LEVELS.indexOf(level);
    const line = (at, text, fields = {}) => {
        if (LOG_LEVELS.indexOf(at) < threshold)
            return;
        const time = new Date(clock.wallMs()).toISOString();
        write(format === "json" ? jsonLine(time, at, text, fields) : textLine(time, at, text, fields));
    };
    return {
        debug: (text, fields) => line("debug", text, fields),
        info: (text, fields) => line("info", text, fields),
        warn: (text, fields) => line("warn", text, fields),
        error: (text, fields) => line("error", text, fields),
    };
}
function jsonLine(time, level, message, fields) {
    const shown = Object.entries(fields).map(([name, value]) => [name, shorten(value)]);
    // Object.fromEntries defines own members only: a field called __proto__ stays a field.
    const object = { time, level, message, ...Object.fromEntries(shown) };
    return `${escapeControl(JSON.stringify(object))}\n`;
}
function textLine(time, level, message, fields) {
    const shown = Object.entries(fields)
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => `${name}=${plain(shorten(value))}`);
    return `${escapeControl([time, level.padEnd(5), message, ...shown].join(" "))}\n`;
}
function plain(value) {
    if (typeof value !== "string")
        return String(JSON.stringify(value));
    return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
function shorten(value) {
    if (value instanceof Error)
        return shorten(value.stack ?? value.message);
    if (typeof value !== "string" || value.length <= VALUE_CHARS_MAX)
        return value;
    return `${value.slice(0, VALUE_CHARS_MAX)}… (${value.length} characters)`;
}
/** Writes what a person on call wants to know; what happens thousands of times a second belongs to the metrics. */
export function logEvents(events, log) {
    return events.on((event) => {
        const level = levelOf(event);
        if (level !== null)
            log[level](wordsOf(event), fieldsOf(event));
    });
}
function fieldsOf(event) {
    if (event.type === "lifecycle")
        return { event: event.type, ...event.detail };
    const { type, ...fields } = event;
    return { event: type, ...fields };
}
function levelOf(event) {
    switch (event.type) {
        case "attempt":
            if (event.status === "dead")
                return "error";
            if (event.alert || event.status === "held")
                return "warn";
            return event.status === "delivered" ? null : "debug";
        case "store_error":
            return "error";
        case "breaker":
            return event.state === "open" ? "warn" : "info";
        case "claim_lost":
        case "reclaimed":
        case "sink_disabled":
            return "warn";
        case "intervened":
        case "lifecycle":
            return "info";
        case "pruned":
            return "debug";
        case "accepted":
        case "claimed":
            return null;
    }
}
function wordsOf(event) {
    switch (event.type) {
        case "attempt":
            if (event.status === "dead")
                return "a message became a dead letter";
            if (event.alert)
                return "a receiver refuses our credentials or configuration";
            return event.status === "held" ? "a message is held" : "an attempt failed and will be made again";
        case "store_error":
            return "the store failed";
        case "breaker":
            return `the breaker is ${event.state.replace("_", " ")}`;
        case "claim_lost":
            return "a claim was lost before its outcome could be written";
        case "reclaimed":
            return "expired leases were taken over";
        case "sink_disabled":
            return "the receiver wants nothing any more: the sink is disabled";
        case "intervened":
            return `${event.action} by ${event.actor}`;
        case "lifecycle":
            return event.what.replaceAll("_", " ");
        default:
            return event.type;
    }
}
//# sourceMappingURL=log.js.map