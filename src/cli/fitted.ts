/**
 * Tables and lines for people that fit a terminal of 100 columns: the last column gives way, times are ages, shares are percents.
 */

import { escapeControl } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import { type Io, say, table } from "./io.ts";

const WIDTH = 100;
const LAST_MIN = 16;

/** As `table`, with every column but the last cut to `max` and the last one to what is left. */
export function fittedTable(io: Io, heads: readonly string[], rows: readonly (readonly string[])[], max = 24): void {
  const last = heads.length - 1;
  const cut = rows.map((row) => row.map((cell, i) => (i === last ? escapeControl(cell) : short(escapeControl(cell), max))));
  const used = heads.slice(0, last).map((head, i) => Math.max(head.length, ...cut.map((row) => row[i]?.length ?? 0)) + 2);
  const room = Math.max(LAST_MIN, WIDTH - used.reduce((total, width) => total + width, 0));
  table(
    io,
    heads,
    cut.map((row) => row.map((cell, i) => (i === last ? short(cell, room) : cell))),
  );
}

export function short(text: string, max: number): string {
  const line = text.replace(/\s+/g, " ");
  return line.length <= max ? line : `${line.slice(0, max - 1)}…`;
}

/** A sentence in lines of the terminal's width, each after `indent`. */
export function wrapped(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (indent.length + longer.length <= WIDTH || line === "") line = longer;
    else {
      lines.push(indent + line);
      line = word;
    }
  }
  return [...lines, indent + line];
}

/** `name  value` lines; what is null is left out. */
export function sayFields(io: Io, fields: Readonly<Record<string, unknown>>): void {
  const shown = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  say(io, ...shown.map(([name, value]) => `${name.padEnd(width)}  ${short(String(value), WIDTH - width - 2)}`));
}

const STEPS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
];

/** How long ago, in one unit: `5m`. */
export function age(instant: string | null): string {
  if (instant === null) return "";
  const ms = Math.max(0, systemClock.wallMs() - Date.parse(instant));
  const [size, unit] = STEPS.find(([step]) => ms >= step) ?? [1_000, "s"];
  return `${Math.floor(ms / size)}${unit}`;
}

export function percent(share: number | null): string {
  return share === null ? "" : `${Math.round(share * 100)}%`;
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
