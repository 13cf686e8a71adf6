/**
 * The log of a Makegood in the caller's own process: text lines on standard error, warnings and errors unless another level is named, or a
 * log of the caller's. Of our own one kind of line about one topic is written at most ten times a minute, and then how many more there
 * were: an outage must not cost the process more than itself.
 */
import type { Clock } from "../platform/clock.ts";
import type { Events } from "./events.ts";
import { createLog, LOG_LEVELS, type Log, type LogFields, type LogLevel, logEvents } from "./log.ts";

/** `silent`: nothing. A level: that and what is worse, as text on standard error. An object: whatever it does (`console` is one). */
export type LogSetting = "silent" | LogLevel | Log;

export interface StartedLog {
  readonly log: Log;
  /** Writes what a person is to be told, whatever the level; where nobody reads, it is an event for a program that does. */
  readonly notice: (line: string) => void;
}

const LINES_MAX = 10;
const WINDOW_MS = 60_000;
/** Kinds of lines that are told apart; all others are one. */
const KINDS_MAX = 500;

const NOTHING = (): void => {};
const SILENT: Log = { debug: NOTHING, info: NOTHING, warn: NOTHING, error: NOTHING };

/** What is wrong with a setting; null: nothing. */
export function logFault(setting: unknown): string | null {
  const isLog = (value: object): boolean => LOG_LEVELS.every((level) => typeof (value as Partial<Log>)[level] === "function");
  if (setting === undefined || setting === "silent" || LOG_LEVELS.includes(setting as LogLevel)) return null;
  if (typeof setting === "object" && setting !== null && isLog(setting)) return null;
  return `log must be "silent", ${LOG_LEVELS.map((level) => `"${level}"`).join(", ")}, or an object with ${LOG_LEVELS.join(", ")}`;
}

/** Without events it only writes what it is told. */
export function startLog(setting: LogSetting = "warn", clock: Clock, events?: Events): StartedLog {
  if (setting === "silent") {
    return { log: SILENT, notice: (line) => events?.emit({ type: "lifecycle", what: "notice", detail: { line } }) };
  }
  if (typeof setting !== "string") {
    if (events) logEvents(events, setting);
    return { log: setting, notice: (line) => setting.warn(line) };
  }
  const write = (line: string): void => void process.stderr.write(line);
  const log = createLog({ clock, format: "text", level: setting, write });
  const always = createLog({ clock, format: "text", write });
  if (events) logEvents(events, bounded(log, clock));
  return { log, notice: (line) => always.warn(line) };
}

function bounded(log: Log, clock: Clock): Log {
  const kinds = new Map<string, { count: number; readonly last: (more: number) => void }>();
  let counting = false;
  const over = (): void => {
    counting = false;
    for (const { count, last } of kinds.values()) if (count > LINES_MAX) last(count - LINES_MAX);
    kinds.clear();
  };
  const at = (level: LogLevel) => (text: string, fields?: LogFields) => {
    if (!counting) clock.after(WINDOW_MS, over, true);
    counting = true;
    const topic = fields?.topic;
    const own = JSON.stringify([level, text, topic]);
    const other = kinds.size >= KINDS_MAX && !kinds.has(own);
    const name = other ? level : own;
    const [words, about] = other ? ["other things", {}] : [text, { topic }];
    const last = (more: number): void => log[level](`${words}: ${more} more lines like this in the last minute`, about);
    const kind = kinds.get(name) ?? { count: 0, last };
    kinds.set(name, kind);
    if (++kind.count <= LINES_MAX) log[level](text, fields);
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
