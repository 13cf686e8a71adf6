/**
 * The whole configuration, read once at start from flags, environment and config file (in that order of precedence). Every
 * mistake in it is collected and reported together; nothing starts on a configuration that has one.
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { errorText } from "../message/errors.js";
import { createAddressGuard } from "../sink/address-guard.js";
import { checkSink } from "../sink/sinks.js";
import { isLoopbackHost, parseTokens } from "./auth.js";
import { loadConfigFile } from "./config-file.js";
import { readTopic } from "./contract-topic.js";
import { suggestion } from "./fields.js";
import { SETTINGS } from "./settings.js";
const LOOPBACK_RANGES = ["127.0.0.0/8", "::1/128"];
const NAMES = Object.keys(SETTINGS);
export async function readConfig(sources) {
    const faults = [];
    refuseUnknownVariables(sources.env, faults);
    const given = new Map();
    for (const name of NAMES) {
        const source = await fromFlagOrEnv(name, sources, faults);
        if (source)
            given.set(name, source);
    }
    const file = await loadConfigFile(sources.cwd, given.get("config")?.text ?? null);
    if (file.kind === "fault")
        faults.push(file.fault);
    const inFile = file.kind === "loaded" ? membersOf(file.value, faults) : new Map();
    takeFileSettings(inFile, given, faults);
    const settings = Object.fromEntries(NAMES.map((name) => [name, settle(name, given, faults)]));
    const tokens = tokensOf(settings, given, faults);
    const loopback = isLoopbackHost(settings.host);
    if (!loopback && settings.tokens === null) {
        const remedy = "set MAKEGOOD_TOKENS (name:secret,…) or MAKEGOOD_TOKENS_FILE, or bind to 127.0.0.1";
        faults.push(`MAKEGOOD_HOST ${settings.host} is not loopback, so others can reach it, and nobody would need a token: ${remedy}`);
    }
    const sinkAllow = settings.sink_allow ?? (loopback ? LOOPBACK_RANGES : []);
    const topics = topicsOf(inFile.get("topics"), sinkAllow, faults);
    if (faults.length > 0)
        return { ok: false, faults };
    const config_path = file.kind === "loaded" ? file.path : null;
    const data_dir = resolve(sources.cwd, settings.data_dir);
    return { ok: true, config: { ...settings, data_dir, tokens, sink_allow: sinkAllow, topics, config_path } };
}
/** A misspelt variable would otherwise be a setting that silently does nothing. */
function refuseUnknownVariables(env, faults) {
    const known = NAMES.flatMap((name) => {
        const { env: variable, secret } = SETTINGS[name];
        return secret ? [variable, `${variable}_FILE`] : [variable];
    });
    for (const name of Object.keys(env)) {
        if (name.startsWith("MAKEGOOD_") && !known.includes(name)) {
            faults.push(`${name} is not a variable of Makegood${suggestion(name, known)}`);
        }
    }
}
async function fromFlagOrEnv(name, { env, flags, cwd }, faults) {
    const { env: variable, secret } = SETTINGS[name];
    const flag = flags?.[name];
    if (flag !== undefined)
        return { where: `--${name.replaceAll("_", "-")}`, text: flag };
    // An empty variable is one that was unset in a hurry.
    const text = env[variable] === "" ? undefined : env[variable];
    const path = secret && env[`${variable}_FILE`] !== "" ? env[`${variable}_FILE`] : undefined;
    if (text !== undefined && path !== undefined)
        faults.push(`${variable} and ${variable}_FILE are both set: keep one`);
    if (text !== undefined)
        return { where: variable, text };
    if (path === undefined)
        return null;
    try {
        const content = (await readFile(resolve(cwd, path), "utf8")).trim();
        if (content === "")
            faults.push(`${variable}_FILE: ${path} is empty`);
        return { where: `${variable}_FILE`, text: content };
    }
    catch (error) {
        faults.push(`${variable}_FILE: ${errorText(error)}`);
        return null;
    }
}
function membersOf(value, faults) {
    if (value !== null && typeof value === "object" && !Array.isArray(value))
        return new Map(Object.entries(value));
    faults.push("the config file must hold an object");
    return new Map();
}
/** Environment and flags win over the file, but a mistake in the file is reported all the same. */
function takeFileSettings(inFile, given, faults) {
    const known = NAMES.filter((name) => SETTINGS[name].inFile);
    for (const [key, value] of inFile) {
        if (key === "topics" || value === null || value === undefined)
            continue;
        const name = known.find((one) => one === key);
        const text = textOf(value);
        const where = `config file, ${key}`;
        if (name === undefined)
            faults.push(`config file: unknown setting ${JSON.stringify(key)}${suggestion(key, [...known, "topics"])}`);
        else if (text === null)
            faults.push(`${where}: must be text, a number or a list of texts`);
        else if (given.has(name))
            readSetting(name, { where, text }, faults);
        else
            given.set(name, { where, text });
    }
}
function textOf(value) {
    if (typeof value === "string")
        return value;
    if (typeof value === "number")
        return String(value);
    return Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join(",") : null;
}
function settle(name, given, faults) {
    const source = given.get(name);
    return source === undefined ? SETTINGS[name].fallback : readSetting(name, source, faults);
}
function readSetting(name, { where, text }, faults) {
    const setting = SETTINGS[name];
    const reading = setting.read(text.trim());
    if ("value" in reading)
        return reading.value;
    faults.push(`${where}: ${reading.fault}${setting.secret ? "" : `, not ${JSON.stringify(text.slice(0, 100))}`}`);
    return setting.fallback;
}
function tokensOf({ tokens: text }, given, faults) {
    if (text === null)
        return [];
    const read = parseTokens(text);
    for (const fault of read.faults)
        faults.push(`${given.get("tokens")?.where}: ${fault}`);
    return read.tokens;
}
function topicsOf(value, sinkAllow, faults) {
    if (value === undefined)
        return [];
    const guard = createAddressGuard({ allow: sinkAllow });
    const rules = { trusted: true, checkSink: (sink) => checkSink(sink, guard) };
    return [...membersOf(value, faults)].flatMap(([name, topic]) => {
        const read = readTopic(name, topic, rules);
        if (read.ok)
            return [{ definition: read.definition, paused: read.paused }];
        for (const { field, detail } of read.faults) {
            faults.push(`config file, topic ${JSON.stringify(name.slice(0, 250))}: ${field === "." ? "" : `${field} `}${detail}`);
        }
        return [];
    });
}
/** What a start prints: everything that matters and no secret. */
export function shownConfig(config) {
    return {
        host: config.host,
        port: config.port,
        store: config.database_url === null ? `embedded in ${config.data_dir}` : withoutPassword(config.database_url),
        schema: config.schema,
        sink_allow: config.sink_allow,
        tokens: config.tokens.map(({ name }) => name),
        concurrency: config.concurrency,
        config_file: config.config_path,
        topics_in_file: config.topics.length,
    };
}
export function withoutPassword(url) {
    try {
        const { protocol, host, pathname } = new URL(url);
        return `${protocol}//${host}${pathname}`;
    }
    catch {
        return "postgres";
    }
}
//# sourceMappingURL=config.js.map