/** Tables and lines for people, fitted to the terminal's width; what a program reads is complete. */
import { escapeControl } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import { type Io, say } from "./io.ts";

const GAP = 2;
/** A column is not cut below this. */
const CELL_MIN = 8;
/** Beside the first column this one is never cut: what it shows is to be copied. */
const WHOLE = "message";
const STATES = ["status", "state", "decision", "execution", "outcome", "applied"];
const COLORS: Readonly<Record<string, number>> = {
  ...{ dead: 31, failed: 31, stopped: 31, reject: 31, rejected: 31, no: 31 },
  ...{ pending: 33, paused: 33, planned: 33, retry: 33, unknown: 33, not: 33, breaker: 33, sink: 33, waiting: 33 },
  ...{ delivered: 32, delivering: 32, done: 32, healed: 32, approved: 32, succeeded: 32, yes: 32, processing: 36, running: 36 },
};
const HEADS: Readonly<Record<string, string>> = {
  ...{ group_id: "group", candidate_id: "candidate", redrive_id: "redrive", message_id: "message", rule_id: "rule" },
  ...{ attempts: "tries", matched: "holds", open_messages: "open", occurrence_count: "seen" },
  ...{ created_at: "created", last_at: "last", error_code: "code", error_message: "text" },
  ...{ selected_action: "action", execution_status: "execution", action_type: "type", event_type: "event" },
};

export type Column<Row> = (keyof Row & string) | readonly [head: string, from: (keyof Row & string) | ((row: Row) => unknown)];
export type Page<Row> = { readonly data: readonly Row[]; readonly next_cursor?: string | null };
export type Listing<Row> = (io: Io, page: Page<Row>) => void;

/** What shows a page of rows: null is nothing, an instant an age on a terminal. Below it stands how to get the next page. */
export function listing<Row>(columns: readonly Column<Row>[]): Listing<Row> {
  const named = columns.map((one) => (typeof one === "string" ? ([HEADS[one] ?? one.replaceAll("_", " "), one] as const) : one));
  const heads = named.map(([head]) => head);
  return (io, { data, next_cursor = null }) => {
    const rows = data.map((row) => named.map(([, from]) => cellOf(io, typeof from === "function" ? from(row) : row[from])));
    const natural = heads.map((head, i) => Math.max(head.length, ...rows.map((row) => row[i]?.length ?? 0)));
    const widths = fitted(heads, natural, io.width);
    const line = (cells: readonly string[], paint = (text: string, _: string): string => text): string => {
      const fit = widths.map((width, i) => paint(short(cells[i] ?? "", width).padEnd(width), heads[i] ?? ""));
      return fit.join(" ".repeat(GAP)).trimEnd();
    };
    const top = line(heads.map((head) => head.toUpperCase()));
    const painted = (text: string, head: string): string => (io.color && STATES.includes(head) ? colored(text) : text);
    io.out(`${[io.color ? `\u001b[1m${top}\u001b[22m` : top, ...rows.map((row) => line(row, painted))].join("\n")}\n`);
    if (next_cursor !== null) say(io, "", `more: --cursor ${next_cursor}`);
  };
}

/** The widest column that may be cut gives way first; where even that is not enough, the last columns are left out. */
function fitted(heads: readonly string[], natural: readonly number[], room: number | null): number[] {
  const widths = [...natural];
  if (room === null) return widths;
  const least = natural.map((width, i) => {
    const head = heads[i] ?? "";
    return i === 0 || head === WHOLE ? width : Math.min(width, Math.max(head.length, CELL_MIN));
  });
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

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function cellOf({ width }: Io, value: unknown): string {
  const text = typeof value === "boolean" ? (value ? "yes" : "no") : String(value ?? "");
  if (width === null) return escapeControl(text);
  return escapeControl(INSTANT.test(text) ? age(text) : text.replace(/\s+/g, " "));
}

export function listOthers<Row>(io: Io, show: Listing<Row>, page: Page<Row>, isShown: (row: Row) => boolean): void {
  const data = page.data.filter(isShown);
  show(io, { ...page, data });
  const hidden = page.data.length - data.length;
  if (hidden > 0) say(io, "", ...wrapped(io, `${hidden} of Makegood's own topics are hidden: --all shows them`, ""));
}

export function listBelow<Row>(io: Io, show: Listing<Row>, data: readonly Row[], ...title: string[]): void {
  if (data.length === 0) return;
  say(io, "", ...title);
  show(io, { data });
}

const short = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, Math.max(0, max - 1))}…`);

export function wrapped({ width }: Io, text: string, indent: string): string[] {
  const room = (width ?? text.length + 2) - indent.length;
  const lines = text.match(new RegExp(`\\S(?:.{0,${Math.max(0, room - 2)}}\\S)?(?=\\s|$)|\\S+`, "g")) ?? [];
  return lines.map((line) => indent + line);
}

export function sayFields(io: Io, fields: Readonly<Record<string, unknown>>): void {
  const shown = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  const room = (io.width ?? Number.POSITIVE_INFINITY) - width - GAP;
  say(io, ...shown.map(([name, value]) => `${name.padEnd(width)}  ${short(String(value), room)}`));
}

export function sayJson(io: Io, value: unknown): void {
  say(io, ...JSON.stringify(value, null, 2).split("\n"));
}

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 };

export function age(instant: string): string {
  const ms = Math.max(0, systemClock.wallMs() - Date.parse(instant));
  const [unit, size] = Object.entries(UNITS).find(([, one]) => ms >= one) ?? ["s", 1_000];
  return `${Math.floor(ms / size)}${unit}`;
}

export const percent = (share: number | null): string => (share === null ? "" : `${Math.round(share * 100)}%`);
export const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`;
