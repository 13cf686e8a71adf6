/**
 * Tables and lines for people. On a terminal they fit its width: long cells give way, then the last columns; times are ages, words for a
 * state are coloured. What a program reads is complete.
 */
import { escapeControl } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import { type Io, say } from "./io.ts";

const GAP = 2;
/** A column is not cut below this. */
const CELL_MIN = 8;
/** Columns whose words say how something stands. */
const STATES = ["status", "state", "decision", "execution", "outcome", "applied"];
const COLORS: Readonly<Record<string, number>> = {
  ...{ dead: 31, failed: 31, stopped: 31, reject: 31, rejected: 31, no: 31 },
  ...{ pending: 33, paused: 33, planned: 33, retry: 33, unknown: 33, not: 33, breaker: 33, sink: 33, waiting: 33 },
  ...{ delivered: 32, delivering: 32, done: 32, healed: 32, approved: 32, succeeded: 32, yes: 32, processing: 36, running: 36 },
};

/** `whole`: columns that are never cut, beside the first one: what they show is to be copied. */
export function table(
  io: Io,
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  whole: readonly string[] = [],
): void {
  const safe = rows.map((row) => row.map((cell) => escapeControl(io.width === null ? cell : cell.replace(/\s+/g, " "))));
  const natural = heads.map((head, i) => Math.max(head.length, ...safe.map((row) => (row[i] ?? "").length)));
  const widths = fitted(heads, natural, whole, io.width);
  const line = (cells: readonly string[], paint: (text: string, head: string) => string): string =>
    widths
      .map((width, i) => paint(short(cells[i] ?? "", width).padEnd(width), heads[i] ?? ""))
      .join(" ".repeat(GAP))
      .trimEnd();
  const bold = (text: string): string => (io.color ? `\u001b[1m${text}\u001b[22m` : text);
  const head = bold(
    line(
      heads.map((one) => one.toUpperCase()),
      (text) => text,
    ),
  );
  const painted = (text: string, name: string): string => (io.color && STATES.includes(name) ? colored(text) : text);
  io.out(`${[head, ...safe.map((row) => line(row, painted))].join("\n")}\n`);
}

/** The widest column that may be cut gives way first; where even that is not enough, the last columns are left out. */
function fitted(heads: readonly string[], natural: readonly number[], whole: readonly string[], room: number | null): number[] {
  const widths = [...natural];
  if (room === null) return widths;
  const least = heads.map((head, i) =>
    i === 0 || whole.includes(head) ? (natural[i] as number) : Math.min(natural[i] as number, Math.max(head.length, CELL_MIN)),
  );
  const sum = (some: readonly number[]): number => some.reduce((total, width) => total + width + GAP, -GAP);
  while (widths.length > 1 && sum(least.slice(0, widths.length)) > room) widths.pop();
  while (sum(widths) > room) {
    const spare = widths.map((width, i) => (width > (least[i] as number) ? width : 0));
    const widest = spare.lastIndexOf(Math.max(...spare));
    if (spare[widest] === 0) return widths;
    widths[widest] = (widths[widest] as number) - 1;
  }
  return widths;
}

function colored(text: string): string {
  const color = COLORS[/^[a-z]+/.exec(text)?.[0] ?? ""];
  return color === undefined ? text : `\u001b[${color}m${text}\u001b[39m`;
}

export function short(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, Math.max(0, max - 1))}…`;
}

/** A sentence in lines of the terminal's width, each after `indent`; a word is never cut. */
export function wrapped({ width }: Io, text: string, indent: string): string[] {
  const room = (width ?? text.length + 2) - indent.length;
  const lines = text.match(new RegExp(`\\S(?:.{0,${Math.max(0, room - 2)}}\\S)?(?=\\s|$)|\\S+`, "g")) ?? [];
  return lines.map((line) => indent + line);
}

/** A column: a field of the row, or what is made of it. */
export type Columns<Row> = Readonly<Record<string, keyof Row | ((row: Row) => unknown)>>;

/** What shows a page of rows: null is nothing, an instant an age on a terminal. Below it stands how to get the next page. */
export const listing =
  <Row>(columns: Columns<Row>, whole: readonly string[] = []) =>
  (io: Io, { data, next_cursor = null }: { readonly data: readonly Row[]; readonly next_cursor?: string | null }): void => {
    const rows = data.map((row) =>
      Object.values(columns).map((from) => cellOf(io, typeof from === "function" ? from(row) : row[from])),
    );
    table(io, Object.keys(columns), rows, whole);
    if (next_cursor !== null) say(io, "", `more: --cursor ${next_cursor}`);
  };

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function cellOf(io: Io, value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  const text = String(value ?? "");
  return io.width !== null && INSTANT.test(text) ? age(text) : text;
}

/** `name  value` lines; what is null is left out. */
export function sayFields(io: Io, fields: Readonly<Record<string, unknown>>): void {
  const shown = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  const room = (io.width ?? Number.POSITIVE_INFINITY) - width - GAP;
  say(io, ...shown.map(([name, value]) => `${name.padEnd(width)}  ${short(String(value), room)}`));
}

export function sayJson(io: Io, value: unknown): void {
  say(io, ...JSON.stringify(value, null, 2).split("\n"));
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
