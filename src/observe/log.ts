/**
 * A log of JSON lines (or plain lines for a person at a terminal): one event, one line, also when a receiver or a payload
 * tries to break it. Control, bidi and line characters leave as escapes.
 */
import type { Clock } from "../platform/clock.ts";
import type { Events, MakegoodEvent } from "./events.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(text: string, fields?: LogFields): void;
  info(text: string, fields?: LogFields): void;
  warn(text: string, fields?: LogFields): void;
  error(text: string, fields?: LogFields): void;
}

export interface LogOptions {
  readonly clock: Clock;
  readonly format: "json" | "text";
  readonly level?: LogLevel | undefined;
  /** Gets whole lines, the newline included. */
  readonly write: (line: string) => void;
}

/** A log line is for reading; what is longer than this is cut. */
const VALUE_CHARS_MAX = 4_096;

// C0, DEL and C1 steer terminals; line separators break lines; bidi marks reorder what a person reads.
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

/** The same text with everything that could steer a terminal or break a line spelled out as `\uXXXX`. */
export function escapeControl(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function createLog({ clock, format, level = "info", write }: LogOptions): Log {
  const threshold = LOG_LEVELS.indexOf(level);
  const line = (at: LogLevel, text: string, fields: LogFields = {}): void => {
    if (LOG_LEVELS.indexOf(at) < threshold) return;
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

function jsonLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  const shown = Object.entries(fields).map(([name, value]) => [name, shorten(value)]);
  // Object.fromEntries defines own members only: a field called __proto__ stays a field.
  const object = { time, level, message, ...Object.fromEntries(shown) };
  return `${escapeControl(JSON.stringify(object))}\n`;
}

function textLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  const shown = Object.entries(fields)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${plain(shorten(value))}`);
  return `${escapeControl([time, level.padEnd(5), message, ...shown].join(" "))}\n`;
}

function plain(value: unknown): string {
  if (typeof value !== "string") return String(JSON.stringify(value));
  return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}

function shorten(value: unknown): unknown {
  if (value instanceof Error) return shorten(value.stack ?? value.message);
  if (typeof value !== "string" || value.length <= VALUE_CHARS_MAX) return value;
  return `${value.slice(0, VALUE_CHARS_MAX)}… (${value.length} characters)`;
}

/** Writes what a person on call wants to know; what happens thousands of times a second belongs to the metrics. */
export function logEvents(events: Events, log: Log): () => void {
  const write = (event: MakegoodEvent): void => {
    const level = levelOf(event);
    if (level !== null) log[level](wordsOf(event), fieldsOf(event));
  };
  return events.on(write, { seldom: true });
}

function fieldsOf(event: MakegoodEvent): LogFields {
  if (event.type === "lifecycle" && event.what === "notice") return { event: event.type };
  if (event.type === "lifecycle") return { event: event.type, ...event.detail };
  const { type, ...fields } = event;
  return { event: type, ...fields };
}

function levelOf(event: MakegoodEvent): LogLevel | null {
  switch (event.type) {
    case "attempt":
      if (event.status === "dead") return "error";
      if (event.alert || event.status === "held") return "warn";
      return event.status === "delivered" ? null : "debug";
    case "unserved":
      return event.restMs === null ? null : "warn";
    case "handed_down":
      if (event.rung === "primary") return null;
      return event.survives === "nothing" ? "error" : "warn";
    case "store_error":
    case "store_lost_data":
    case "rung_failed":
    case "quarantined":
      return "error";
    case "durability":
      return "warn";
    case "journal_note":
      return "warn";
    case "audit":
      return event.result === "success" ? null : event.result === "failed" ? "error" : "warn";
    case "recovery_ingest":
      return event.status === "error" ? "warn" : null;
    case "drained":
      return "info";
    case "breaker":
      return event.state === "open" ? "warn" : "info";
    case "claim_lost":
    case "reclaimed":
    case "sink_disabled":
      return "warn";
    case "lifecycle":
      return event.what === "sink_not_made" || event.what === "recovery_home_away" ? "warn" : "info";
    case "intervened":
      return "info";
    case "redrive":
      if (event.status === "running") return "debug";
      return event.status === "stopped" ? "warn" : "info";
    case "job":
      return event.result === "failed" ? "warn" : "debug";
    case "conservation":
      return event.state === "whole" ? "debug" : event.state === "broken" ? "error" : "warn";
    case "lock":
      return event.what === "lost" ? "warn" : "debug";
    case "archived":
    case "retired":
      return "info";
    case "evidence":
    case "pruned":
    case "absorbed":
      return "debug";
    case "accepted":
    case "claimed":
    case "direct":
      return null;
  }
}

const AUDIT_WORDS = {
  success: "an audit record is stored",
  fallback: "an audit record could not be stored at once and waits in a queue",
  validation_error: "an audit record does not fit and is quarantined: its producer needs a fix",
  failed: "an audit record could neither be stored nor queued durably",
} as const;

function wordsOf(event: MakegoodEvent): string {
  switch (event.type) {
    case "attempt":
      if (event.status === "dead") return "a message became a dead letter";
      if (event.alert) return "a receiver refuses our credentials or configuration";
      return event.status === "held" ? "a message is held" : "an attempt failed and will be made again";
    case "unserved":
      return "this process cannot deliver a topic and leaves it to others for a while";
    case "store_error":
      return "the store failed";
    case "store_lost_data":
      return "the store lost what it had accepted";
    case "durability":
      return `what is accepted now survives ${event.survives}`;
    case "audit":
      return AUDIT_WORDS[event.result];
    case "recovery_ingest":
      return event.status === "error" ? "a failure could not be taken in" : "failures were taken in";
    case "handed_down":
      return event.rung === "none" ? "nothing took a message: its text is in the log only" : `a message is kept in ${event.rung}`;
    case "rung_failed":
      return `the ${event.rung} rung failed`;
    case "drained":
      return `what waited in ${event.rung} was moved up`;
    case "absorbed":
      return "a message that waited below was stored already";
    case "quarantined":
      return "a message contradicts what is stored and is kept for a person";
    case "journal_note":
      return `journal: ${event.what.replaceAll("_", " ")}`;
    case "breaker":
      return `the breaker${event.tenantId === undefined ? "" : " of one tenant"} is ${event.state.replace("_", " ")}`;
    case "claim_lost":
      return "a claim was lost before its outcome could be written";
    case "reclaimed":
      return "expired leases were taken over";
    case "sink_disabled":
      return "the receiver wants nothing any more: the sink is disabled";
    case "intervened":
      return `${event.action} by ${event.actor}`;
    case "redrive":
      return `a redrive is ${event.status}`;
    case "job":
      return `the job ${event.name} ${event.result === "done" ? "is done" : `was ${event.result}`}`;
    case "lock":
      return `the lock ${event.name} was ${event.what === "failed" ? "not acquired" : event.what}`;
    case "conservation":
      return event.state === "broken"
        ? "conservation is broken: what was accepted is not what is there"
        : `conservation is ${event.state}`;
    case "archived":
      return `records went to the archive: ${event.class}`;
    case "retired":
      return `records past their retention were deleted: ${event.class}`;
    case "lifecycle":
      return event.what === "notice" ? String(event.detail?.line) : event.what.replaceAll("_", " ");
    default:
      return event.type;
  }
}
