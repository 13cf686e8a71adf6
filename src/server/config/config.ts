/** The whole configuration, from flags, environment and config file, in that order; every mistake in it is reported together. */
import { readdir, readFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { FAULTS_NAMED_MAX, suggestion } from "../../contract/faults.ts";
import { errorText } from "../../message/errors.ts";
import { isObject } from "../../message/json.ts";
import { registerAuditType } from "../../presets/audit/registry.ts";
import { isLoopbackHost, parseTokens, type Token } from "../auth.ts";
import { type ReadTopic, readTopic } from "../json/topic-json.ts";
import { readValue, readVariables, SETTINGS, type Setting, type SettingName, type Settings } from "./settings.ts";

type FromVariables = ReturnType<typeof readVariables>;

/** `streams` is null where none is opened here, `recovery_options` false where there is no engine. */
export interface Config extends Omit<Settings, "tokens" | "sink_allow" | "streams">, FromVariables {
  readonly tokens: readonly Token[];
  readonly sink_allow: readonly string[];
  readonly topics: readonly ReadTopic[];
  readonly config_path: string | null;
}

export type ConfigRead =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly faults: readonly string[] };

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly flags?: Readonly<Partial<Record<SettingName, string>>> | undefined;
  /** True: with MAKEGOOD_URL only a config file that is named is loaded. A server is asked then, and a file may run code. */
  readonly asksServer?: boolean | undefined;
}

const LOOPBACK_RANGES: readonly string[] = ["127.0.0.0/8", "::1/128"];
const TABLE: Readonly<Record<SettingName, Setting>> = SETTINGS;
const NAMES = Object.keys(TABLE) as SettingName[];
/** What only the file has. */
const BESIDE = ["topics", "audit_types"];
const IN_FILE = NAMES.filter((name) => TABLE[name].inFile !== false);

type Source = { readonly where: string; readonly value: unknown };

export async function readConfig(sources: ConfigSources): Promise<ConfigRead> {
  const { env, cwd, asksServer = false } = sources;
  const faults: string[] = [];
  refuseUnknownVariables(env, faults);
  const given = new Map<SettingName, Source>();
  for (const name of NAMES) {
    const source = await fromFlagOrEnv(name, sources, faults);
    if (source) given.set(name, source);
  }
  const named = given.get("config")?.value as string | undefined;
  const unasked = asksServer && given.has("url") && named === undefined;
  const file = unasked ? undefined : await loadConfigFile(cwd, named, faults);
  const inFile = file ? membersOf(file.value, faults) : {};
  takeFileSettings(inFile, given, faults);
  const settings = Object.fromEntries(NAMES.map((name) => [name, settle(name, given.get(name), faults)])) as Settings;

  const { tokens, faults: wrong } = parseTokens(settings.tokens);
  faults.push(...wrong.map((fault) => `${given.get("tokens")?.where}: ${fault}`));
  const loopback = isLoopbackHost(settings.host);
  const bound = {
    MAKEGOOD_HOST: settings.host,
    MAKEGOOD_PROBE_HOST: settings.probe_port === null ? "localhost" : settings.probe_host,
  };
  for (const [variable, host] of Object.entries(bound)) {
    if (isLoopbackHost(host) || settings.tokens !== null) continue;
    const remedy = "set MAKEGOOD_TOKENS (name:secret,…) or MAKEGOOD_TOKENS_FILE, or bind to 127.0.0.1";
    const why = "is not loopback, so others can reach it, and nobody would need a token";
    faults.push(`${variable} ${host} ${why}: ${remedy}`);
  }
  if (settings.store === "redis" && settings.redis_url === null) faults.push("MAKEGOOD_STORE is redis: REDIS_URL must say where");
  const sink_allow = settings.sink_allow ?? (loopback ? LOOPBACK_RANGES : []);
  const topics = await topicsOf(inFile.topics, sink_allow, faults);
  registerTypes(inFile.audit_types, faults);
  const variables = readVariables(settings, env, faults);
  // C1: as many as a refusal of the API names.
  const more = faults.length - FAULTS_NAMED_MAX;
  if (more > 0) faults.splice(FAULTS_NAMED_MAX, more, `and ${more} more`);
  if (faults.length > 0) return { ok: false, faults };
  const data_dir = resolve(cwd, settings.data_dir);
  const read = { data_dir, tokens, sink_allow, topics, config_path: file?.path ?? null };
  return { ok: true, config: { ...settings, ...variables, ...read } };
}

/** A misspelt variable would otherwise be a setting that silently does nothing. */
function refuseUnknownVariables(env: ConfigSources["env"], faults: string[]): void {
  const known = Object.values(TABLE).flatMap(({ env: one, secret }) => (secret ? [one, `${one}_FILE`] : [one]));
  for (const name of Object.keys(env)) {
    if (name.startsWith("MAKEGOOD_") && !known.includes(name))
      faults.push(`${name} is not a variable of Makegood${suggestion(name, known)}`);
  }
}

async function fromFlagOrEnv(name: SettingName, { env, flags, cwd }: ConfigSources, faults: string[]): Promise<Source | null> {
  const { env: variable, secret } = TABLE[name];
  const flag = flags?.[name];
  if (flag !== undefined) return { where: `--${name.replaceAll("_", "-")}`, value: flag };
  // An empty variable is one that was unset in a hurry.
  const value = env[variable] || undefined;
  const path = secret ? env[`${variable}_FILE`] || undefined : undefined;
  if (value !== undefined && path !== undefined) faults.push(`${variable} and ${variable}_FILE are both set: keep one`);
  if (value !== undefined) return { where: variable, value };
  if (path === undefined) return null;
  try {
    const content = (await readFile(resolve(cwd, path), "utf8")).trim();
    if (content === "") faults.push(`${variable}_FILE: ${path} is empty`);
    return { where: `${variable}_FILE`, value: content };
  } catch (error) {
    faults.push(`${variable}_FILE: ${errorText(error)}`);
    return null;
  }
}

const FILE_NAMES = ["makegood.config.mjs", "makegood.config.json", "makegood.config.ts"];

/** It only has to be one file that exports an object. Undefined: there is none, or what is wrong with it is among the faults. */
async function loadConfigFile(cwd: string, asked: string | undefined, faults: string[]) {
  const present: string[] = asked === undefined ? await readdir(cwd).catch(() => []) : [asked];
  const [name, ...more] = asked === undefined ? FILE_NAMES.filter((one) => present.includes(one)) : present;
  if (more.length > 0) faults.push(`there are several config files, keep one: ${[name, ...more].join(", ")}`);
  if (name === undefined || more.length > 0) return undefined;
  const path = resolve(cwd, name);
  try {
    return { path, value: await load(path) };
  } catch (error) {
    faults.push(`config file ${path}: ${errorText(error)}`);
    return undefined;
  }
}

async function load(path: string): Promise<unknown> {
  const kind = extname(path);
  if (kind === ".json") return JSON.parse(await readFile(path, "utf8"));
  if (![".mjs", ".js", ".ts", ".mts"].includes(kind)) throw new Error("its name must end in .mjs, .json or .ts");
  if (kind.endsWith("ts") && !(process.features as { typescript?: unknown }).typescript) {
    const remedy = "rename it to makegood.config.mjs (and remove the types), or run Node 22.18 or later";
    throw new Error(`Node ${process.versions.node} does not run TypeScript; ${remedy}`);
  }
  const module: { default?: unknown } = await import(pathToFileURL(path).href);
  if (module.default === undefined) throw new Error("it has no default export");
  return module.default;
}

function membersOf(value: unknown, faults: string[]): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value;
  faults.push("the config file must hold an object");
  return {};
}

/** Environment and flags win over the file, but a mistake in the file is reported all the same. */
function takeFileSettings(inFile: object, given: Map<SettingName, Source>, faults: string[]): void {
  for (const [key, value] of Object.entries(inFile)) {
    if (BESIDE.includes(key) || value === null || value === undefined) continue;
    const name = IN_FILE.find((one) => one === key);
    const source = { where: `config file, ${key.slice(0, 100)}`, value };
    // C1: no edit distance for more of them than are shown.
    const meant = faults.length < FAULTS_NAMED_MAX ? suggestion(key, [...IN_FILE, ...BESIDE]) : "";
    if (name === undefined) faults.push(`config file: unknown setting ${JSON.stringify(key.slice(0, 100))}${meant}`);
    else if (given.has(name)) settle(name, source, faults);
    else given.set(name, source);
  }
}

function settle(name: SettingName, source: Source | undefined, faults: string[]): unknown {
  const { schema, fallback, secret } = TABLE[name];
  return source === undefined ? fallback : (readValue(schema, source.value, source.where, faults, secret) ?? fallback);
}

async function topicsOf(value: unknown, sinkAllow: readonly string[], faults: string[]): Promise<ReadTopic[]> {
  if (value === undefined) return [];
  // Loaded only here: every command reads a configuration, and the sinks' code is by far the dearest part of its start.
  const { sinkCheck } = await import("../kernel.ts");
  const checkSink = sinkCheck(sinkAllow);
  return Object.entries(membersOf(value, faults)).flatMap(([name, topic]): ReadTopic[] => {
    const read = readTopic(name, topic, checkSink);
    if (read.ok) return [read.value];
    const which = `config file, topic ${JSON.stringify(name.slice(0, 250))}`;
    for (const { field, detail } of read.faults.named) faults.push(`${which}: ${field === "." ? "" : `${field} `}${detail}`);
    if (read.faults.more > 0) faults.push(`${which}: and ${read.faults.more} more`);
    return [];
  });
}

/** Audit types of the user's own, by name: `{ producer, data, schema }`. */
function registerTypes(value: unknown, faults: string[]): void {
  if (value === undefined) return;
  for (const [type, given] of Object.entries(membersOf(value, faults))) {
    try {
      registerAuditType({ ...(given as object), type });
    } catch (error) {
      faults.push(`config file, ${errorText(error)}`);
    }
  }
}

/** What a start prints: everything that matters and no secret. */
export function shownConfig(config: Config): Record<string, unknown> {
  const { host, port, schema, sink_allow, recovery, concurrency, config_path: config_file } = config;
  return {
    ...{ host, port, schema, sink_allow, recovery, concurrency, config_file },
    store: storeText(config),
    secondary: config.store === "postgres" && config.redis_url !== null ? withoutPassword(config.redis_url) : null,
    streams: (["audit", "recovery"] as const).filter((name) => config.streams?.[name]),
    tokens: config.tokens.map(({ name }) => name),
    topics_in_file: config.topics.length,
  };
}

export function storeText({ store, redis_url, database_url, data_dir }: Config): string {
  if (store === "memory") return "in the memory of this process";
  if (store === "redis") return withoutPassword(redis_url ?? "");
  return database_url === null ? `embedded in ${data_dir}` : withoutPassword(database_url);
}

function withoutPassword(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return url.replace(/:.*/s, "") || "postgres";
  }
}
