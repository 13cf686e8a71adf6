/**
 * The whole configuration, read once at start from flags, environment and config file (in that order of precedence). Every
 * mistake in it is collected and reported together; nothing starts on a configuration that has one.
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { suggestion } from "../../contract/faults.ts";
import { errorText } from "../../message/errors.ts";
import type { TopicDefinition } from "../../message/topic.ts";
import { isLoopbackHost, parseTokens, type Token } from "../auth.ts";
import { readTopic } from "../topic-definition.ts";
import { loadConfigFile } from "./config-file.ts";
import { type RecoveryConfig, readRecoveryOptions } from "./recovery-config.ts";
import { SETTINGS, type Setting, type SettingName, type Settings } from "./settings.ts";
import { readStreams, type StreamsConfig, unusedVariables } from "./stream-config.ts";

export interface FileTopic {
  readonly definition: TopicDefinition;
  readonly paused: boolean | undefined;
}

export interface Config extends Omit<Settings, "tokens" | "sink_allow" | "streams">, RecoveryConfig {
  readonly tokens: readonly Token[];
  readonly sink_allow: readonly string[];
  /** Null: none is opened here. */
  readonly streams: StreamsConfig | null;
  /** Variables that are set and have no effect in this configuration. */
  readonly unused_variables: readonly string[];
  readonly topics: readonly FileTopic[];
  readonly config_path: string | null;
}

export type ConfigRead =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly faults: readonly string[] };

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** What the command line said, by setting. */
  readonly flags?: Readonly<Partial<Record<SettingName, string>>> | undefined;
  /** True: with MAKEGOOD_URL only a config file that is named is loaded. A server is asked then, and a file may run code. */
  readonly asksServer?: boolean | undefined;
}

const LOOPBACK_RANGES: readonly string[] = ["127.0.0.0/8", "::1/128"];
const NAMES = Object.keys(SETTINGS) as SettingName[];
/** What a value is called where it stands. */
interface Source {
  readonly where: string;
  readonly text: string;
}

export async function readConfig(sources: ConfigSources): Promise<ConfigRead> {
  const faults: string[] = [];
  refuseUnknownVariables(sources.env, faults);
  const given = new Map<SettingName, Source>();
  for (const name of NAMES) {
    const source = await fromFlagOrEnv(name, sources, faults);
    if (source) given.set(name, source);
  }
  const named = given.get("config")?.text ?? null;
  const unasked = sources.asksServer === true && given.has("url") && named === null;
  const file = unasked ? ({ kind: "none" } as const) : await loadConfigFile(sources.cwd, named);
  if (file.kind === "fault") faults.push(file.fault);
  const inFile = file.kind === "loaded" ? membersOf(file.value, faults) : new Map<string, unknown>();
  takeFileSettings(inFile, given, faults);
  const settings = Object.fromEntries(NAMES.map((name) => [name, settle(name, given, faults)])) as Settings;

  const tokens = tokensOf(settings, given, faults);
  const loopback = isLoopbackHost(settings.host);
  if (!loopback && settings.tokens === null) {
    const remedy = "set MAKEGOOD_TOKENS (name:secret,…) or MAKEGOOD_TOKENS_FILE, or bind to 127.0.0.1";
    faults.push(
      `MAKEGOOD_HOST ${settings.host} is not loopback, so others can reach it, and nobody would need a token: ${remedy}`,
    );
  }
  if (settings.store === "redis" && settings.redis_url === null) faults.push("MAKEGOOD_STORE is redis: REDIS_URL must say where");
  const sinkAllow = settings.sink_allow ?? (loopback ? LOOPBACK_RANGES : []);
  const topics = await topicsOf(inFile.get("topics"), sinkAllow, faults);
  const streams = readStreams(settings, sources.env, faults);
  const recovery_options = readRecoveryOptions(settings, sources.env, faults);
  if (faults.length > 0) return { ok: false, faults };
  const unused_variables = unusedVariables(settings, sources.env);
  const config_path = file.kind === "loaded" ? file.path : null;
  const data_dir = resolve(sources.cwd, settings.data_dir);
  return {
    ok: true,
    config: {
      ...settings,
      data_dir,
      tokens,
      sink_allow: sinkAllow,
      topics,
      streams,
      recovery_options,
      unused_variables,
      config_path,
    },
  };
}

/** A misspelt variable would otherwise be a setting that silently does nothing. */
function refuseUnknownVariables(env: ConfigSources["env"], faults: string[]): void {
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

async function fromFlagOrEnv(name: SettingName, { env, flags, cwd }: ConfigSources, faults: string[]): Promise<Source | null> {
  const { env: variable, secret } = SETTINGS[name];
  const flag = flags?.[name];
  if (flag !== undefined) return { where: `--${name.replaceAll("_", "-")}`, text: flag };
  // An empty variable is one that was unset in a hurry.
  const text = env[variable] === "" ? undefined : env[variable];
  const path = secret && env[`${variable}_FILE`] !== "" ? env[`${variable}_FILE`] : undefined;
  if (text !== undefined && path !== undefined) faults.push(`${variable} and ${variable}_FILE are both set: keep one`);
  if (text !== undefined) return { where: variable, text };
  if (path === undefined) return null;
  try {
    const content = (await readFile(resolve(cwd, path), "utf8")).trim();
    if (content === "") faults.push(`${variable}_FILE: ${path} is empty`);
    return { where: `${variable}_FILE`, text: content };
  } catch (error) {
    faults.push(`${variable}_FILE: ${errorText(error)}`);
    return null;
  }
}

function membersOf(value: unknown, faults: string[]): Map<string, unknown> {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return new Map(Object.entries(value));
  faults.push("the config file must hold an object");
  return new Map();
}

/** Environment and flags win over the file, but a mistake in the file is reported all the same. */
function takeFileSettings(inFile: ReadonlyMap<string, unknown>, given: Map<SettingName, Source>, faults: string[]): void {
  const known = NAMES.filter((name) => SETTINGS[name].inFile);
  for (const [key, value] of inFile) {
    if (key === "topics" || value === null || value === undefined) continue;
    const name = known.find((one) => one === key);
    const text = textOf(value);
    const where = `config file, ${key}`;
    if (name === undefined)
      faults.push(`config file: unknown setting ${JSON.stringify(key)}${suggestion(key, [...known, "topics"])}`);
    else if (text === null) faults.push(`${where}: must be text, a number or a list of texts`);
    else if (given.has(name)) readSetting(name, { where, text }, faults);
    else given.set(name, { where, text });
  }
}

function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join(",") : null;
}

function settle(name: SettingName, given: ReadonlyMap<SettingName, Source>, faults: string[]): unknown {
  const source = given.get(name);
  return source === undefined ? SETTINGS[name].fallback : readSetting(name, source, faults);
}

function readSetting(name: SettingName, { where, text }: Source, faults: string[]): unknown {
  const setting = SETTINGS[name] as Setting<unknown>;
  const reading = setting.read(text.trim());
  if ("value" in reading) return reading.value;
  faults.push(`${where}: ${reading.fault}${setting.secret ? "" : `, not ${JSON.stringify(text.slice(0, 100))}`}`);
  return setting.fallback;
}

function tokensOf({ tokens: text }: Settings, given: ReadonlyMap<SettingName, Source>, faults: string[]): readonly Token[] {
  if (text === null) return [];
  const read = parseTokens(text);
  for (const fault of read.faults) faults.push(`${given.get("tokens")?.where}: ${fault}`);
  return read.tokens;
}

async function topicsOf(value: unknown, sinkAllow: readonly string[], faults: string[]): Promise<FileTopic[]> {
  if (value === undefined) return [];
  // Loaded only here: every command reads a configuration, and the sinks' code is by far the dearest part of its start.
  const { createAddressGuard } = await import("../../sink/address-guard.ts");
  const { checkSink } = await import("../../sink/check-sink.ts");
  const guard = createAddressGuard({ allow: sinkAllow });
  const rules = { trusted: true, checkSink: (sink: TopicDefinition["sink"]) => checkSink(sink, guard) };
  return [...membersOf(value, faults)].flatMap(([name, topic]): FileTopic[] => {
    const read = readTopic(name, topic, rules);
    if (read.ok) return [{ definition: read.definition, paused: read.paused }];
    const which = `config file, topic ${JSON.stringify(name.slice(0, 250))}`;
    for (const { field, detail } of read.faults.named) faults.push(`${which}: ${field === "." ? "" : `${field} `}${detail}`);
    if (read.faults.more > 0) faults.push(`${which}: and ${read.faults.more} more`);
    return [];
  });
}

/** What a start prints: everything that matters and no secret. */
export function shownConfig(config: Config): Record<string, unknown> {
  return {
    host: config.host,
    port: config.port,
    store: storeText(config),
    secondary: config.store === "postgres" && config.redis_url !== null ? withoutPassword(config.redis_url) : null,
    schema: config.schema,
    streams: [config.streams?.audit ? "audit" : "", config.streams?.recovery ? "recovery" : ""].filter((name) => name !== ""),
    sink_allow: config.sink_allow,
    recovery: config.recovery,
    tokens: config.tokens.map(({ name }) => name),
    concurrency: config.concurrency,
    config_file: config.config_path,
    topics_in_file: config.topics.length,
  };
}

/** Where the store is, without its password. */
export function storeText({ store, redis_url, database_url, data_dir }: Config): string {
  if (store === "memory") return "in the memory of this process";
  if (store === "redis") return withoutPassword(redis_url ?? "");
  return database_url === null ? `embedded in ${data_dir}` : withoutPassword(database_url);
}

export function withoutPassword(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return url.replace(/:.*/s, "") || "postgres";
  }
}
