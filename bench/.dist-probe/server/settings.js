/**
 * Every setting of the server, once: its name in the config file, its variable in the environment, what it may be and what
 * it is when nobody says. The README's table and the "did you mean" of a misspelt name read the same list.
 */
import { DEFAULTS, LIMITS } from "../message/limits.js";
import { LOG_LEVELS } from "../observe/log.js";
import { parseCidr } from "../sink/address.js";
function setting(env, fallback, read, traits = {}) {
    return { env, fallback, read, secret: traits.secret ?? false, inFile: traits.inFile ?? true };
}
const integer = (min, max) => (text) => {
    const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? { value } : { fault: `must be an integer from ${min} to ${max}` };
};
const decimal = (above, max) => (text) => {
    const value = /^[0-9]{1,9}(\.[0-9]{1,9})?$/.test(text) ? Number(text) : Number.NaN;
    return value > above && value <= max ? { value } : { fault: `must be a number above ${above} and at most ${max}` };
};
const oneOf = (allowed) => (text) => {
    const value = allowed.find((one) => one === text);
    return value === undefined ? { fault: `must be one of ${allowed.join(", ")}` } : { value };
};
const matching = (form, what) => (text) => form.test(text) ? { value: text } : { fault: `must be ${what}` };
const list = (isOne, what) => (text) => {
    const entries = text.split(",").map((entry) => entry.trim());
    const given = entries.filter((entry) => entry !== "");
    const wrong = given.filter((entry) => !isOne(entry));
    return wrong.length === 0
        ? { value: given }
        : { fault: `${wrong.map((entry) => JSON.stringify(entry)).join(", ")}: ${what}` };
};
const HOST = /^(\[?[0-9a-fA-F:.]+\]?|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)$/;
const SCHEMA = /^(?!pg_)[a-z_][a-z0-9_]{0,50}$/;
const DAY_MS = 86_400_000;
const days = (text) => {
    const read = decimal(0, 36_500)(text);
    return "value" in read ? { value: Math.round(read.value * DAY_MS) } : read;
};
const asIs = (text) => ({ value: text });
export const SETTINGS = {
    port: setting("MAKEGOOD_PORT", 4_600, integer(0, 65_535)),
    host: setting("MAKEGOOD_HOST", "127.0.0.1", matching(HOST, "an address or a host name")),
    hosts: setting("MAKEGOOD_HOSTS", [], list((one) => HOST.test(one), "not a host name")),
    data_dir: setting("MAKEGOOD_DATA_DIR", "./.makegood", asIs),
    database_url: setting("DATABASE_URL", null, matching(/^postgres(ql)?:\/\/\S+$/, "a URL that begins with postgres:// or postgresql://"), { secret: true }),
    schema: setting("MAKEGOOD_SCHEMA", "makegood", matching(SCHEMA, "lower-case letters, digits and _, at most 51, not beginning with pg_")),
    sink_allow: setting("MAKEGOOD_SINK_ALLOW", null, list((one) => parseCidr(one) !== null, "not a CIDR range such as 10.0.0.0/8")),
    tokens: setting("MAKEGOOD_TOKENS", null, asIs, { secret: true }),
    concurrency: setting("MAKEGOOD_CONCURRENCY", DEFAULTS.concurrency, integer(1, 10_000)),
    poll_ms: setting("MAKEGOOD_POLL_MS", DEFAULTS.pollMs, integer(10, 3_600_000)),
    drain_ms: setting("MAKEGOOD_DRAIN_MS", DEFAULTS.drainMs, integer(0, 3_600_000)),
    kept_days: setting("MAKEGOOD_KEPT_DAYS", DEFAULTS.deliveredKeptMs, days),
    payload_bytes_max: setting("MAKEGOOD_PAYLOAD_BYTES_MAX", LIMITS.payloadBytesMax, integer(1, LIMITS.payloadBytesMax)),
    log: setting("MAKEGOOD_LOG", null, oneOf(["json", "text"])),
    log_level: setting("MAKEGOOD_LOG_LEVEL", "info", oneOf(LOG_LEVELS)),
    url: setting("MAKEGOOD_URL", null, matching(/^https?:\/\/[^\s/?#@]+\/?$/, "http://host:port, without a path"), {
        inFile: false,
    }),
    token: setting("MAKEGOOD_TOKEN", null, asIs, { secret: true, inFile: false }),
    config: setting("MAKEGOOD_CONFIG", null, asIs, { inFile: false }),
};
//# sourceMappingURL=settings.js.map