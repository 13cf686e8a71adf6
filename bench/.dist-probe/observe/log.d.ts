/**
 * A log of JSON lines (or plain lines for a person at a terminal): one event, one line, whatever a receiver or a payload
 * tried to smuggle into it. Control, bidi and line characters leave as escapes.
 */
import type { Clock } from "../platform/clock.ts";
import type { Events } from "./events.ts";
export declare const LOG_LEVELS: readonly ["debug", "info", "warn", "error"];
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
/** The same text with everything that could steer a terminal or break a line spelled out as `\uXXXX`. */
export declare function escapeControl(text: string): string;
export declare function createLog({ clock, format, level, write }: LogOptions): Log;
/** Writes what a person on call wants to know; what happens thousands of times a second belongs to the metrics. */
export declare function logEvents(events: Events, log: Log): () => void;
