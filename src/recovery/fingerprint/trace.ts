/** The frame of a stack trace where the failure arose, and the message beside it. Looks at a bounded part of the text. */
import { mask } from "./mask.ts";

const TRACE_CHARS_MAX = 65_536;
const LINES_MAX = 400;
const LINE_CHARS_MAX = 500;

interface Frame {
  /** The function and the file, without line numbers and addresses. */
  readonly text: string;
  /** Frames of a runtime say nothing about who failed: one of the program is preferred. */
  readonly runtime: boolean;
  /** Whether the next line belongs to it. */
  readonly twoLines: boolean;
}

function frame(name: string, place: string, runtime: boolean, twoLines = false): Frame | undefined {
  const file = place.trim().replace(/^.*[/\\]/s, "");
  const text = `${name.trim()} ${file}`.trim();
  return text === "" ? undefined : { text, runtime, twoLines };
}

/** "x.js:10:5" → "x.js"; a drive letter stays. */
function withoutLine(place: string): string {
  return place.replace(/(?<=..)(?::\d{1,9}){1,2}$/s, "");
}

function beforeParenthesis(text: string): string {
  return text.replace(/\(.*/s, "");
}

/** JavaScript, Java and C#: "at …". */
function atFrame(line: string): Frame | undefined {
  if (!line.startsWith("at ")) return undefined;
  const rest = line.slice(line.startsWith("async ", 3) ? 9 : 3);
  const name = beforeParenthesis(rest).trim();
  const source = rest.lastIndexOf(" in ");
  const sourceEnd = rest.indexOf(":line ", source);
  if (source > 0 && sourceEnd > 0) return frame(name, rest.slice(source + 4, sourceEnd), /^(?:System|Microsoft)\./.test(rest));
  const open = rest.indexOf("(");
  if (open < 0) return /[/:]/.test(rest) ? frame("", withoutLine(rest), rest.startsWith("node:")) : undefined;
  const inside = rest.slice(open + 1, rest.lastIndexOf(")"));
  const place = withoutLine(inside);
  const runtime = /^(?:node:|java\.|javax\.|jdk\.|sun\.|System\.|Microsoft\.)/.test(rest[0] === "(" ? inside : rest);
  const ofNode = inside.startsWith("node:");
  // Prose may begin with "at", too: a frame names a member or a place with a line.
  if (place === inside && !ofNode && (!name.includes(".") || name.includes(" "))) return undefined;
  return frame(name, place === inside && !inside.includes(".") ? "" : place, runtime || ofNode);
}

/** `File "/app/pay.py", line 4, in charge` */
function pythonFrame(line: string): Frame | undefined {
  const [, file, name = ""] = /^File "([^"]*)", line (?:.*?, in (.*))?/s.exec(line) ?? [];
  return file === undefined ? undefined : frame(name, file, line.includes("/lib/python"));
}

/** "pay.rb:4:in `charge'", with or without "from". */
function rubyFrame(line: string): Frame | undefined {
  const text = line.replace(/^from /, "");
  const at = text.indexOf(":in ");
  if (at <= 0 || !text.slice(0, at).includes(".rb:")) return undefined;
  return frame(text.slice(at + 5).replace(/'.*/s, ""), withoutLine(text.slice(0, at)), text.includes("/lib/ruby/"));
}

/** "#0 /app/Pay.php(12): Acme\Pay->charge()" */
function phpFrame(line: string): Frame | undefined {
  const space = line.indexOf(" ");
  const colon = line.indexOf("): ", space);
  if (colon < 0 || !/^#\d{1,9} /.test(line)) return undefined;
  const place = line.slice(space + 1, line.lastIndexOf("(", colon));
  return frame(beforeParenthesis(line.slice(colon + 3)), place, place.startsWith("[internal function"));
}

/** "   4: pay::charge": the place stands on the next line, "at src/pay.rs:10:5". */
function rustFrame(line: string, next: string): Frame | undefined {
  const [, named = ""] = /^\d{1,9}: (.*)/s.exec(line) ?? [];
  const placed = next.startsWith("at ");
  const hash = named.lastIndexOf("::h");
  const name = (hash > 0 && named.length - hash === 19 ? named.slice(0, hash) : named).trim();
  if (name === "" || !(placed || name.includes("::"))) return undefined;
  const runtime = /^<?(?:std|core|alloc|backtrace|rust_begin_unwind|__rust|tokio)\b/.test(name);
  return frame(name, placed ? withoutLine(next.slice(3)) : "", runtime, placed);
}

/** "main.charge(0xc000…)", its place on the next line: "/app/pay.go:10 +0x1d". */
function goFrame(line: string, next: string): Frame | undefined {
  const go = next.indexOf(".go:");
  if (go < 0 || !line.endsWith(")") || line.startsWith("at ")) return undefined;
  const name = line.startsWith("created by ") ? line.slice(11) : line.slice(0, line.lastIndexOf("("));
  return frame(name, next.slice(0, go + 3), name === "panic" || name.startsWith("runtime"), true);
}

/** What the line at `i` is, if it is a frame of a trace. */
export function frameAt(lines: readonly string[], i: number): Frame | undefined {
  const line = (lines[i] ?? "").trim();
  const next = (lines[i + 1] ?? "").trim();
  return atFrame(line) ?? pythonFrame(line) ?? phpFrame(line) ?? rubyFrame(line) ?? rustFrame(line, next) ?? goFrame(line, next);
}

function linesOf(text: string): string[] {
  const lines = text.slice(0, TRACE_CHARS_MAX).split("\n", LINES_MAX);
  return lines.map((line) => line.slice(0, LINE_CHARS_MAX));
}

const isPython = (lines: readonly string[]): boolean =>
  lines.some((line) => line.startsWith("Traceback (most recent call last)"));

/** "function file", masked, of the first frame that is the program's own; undefined when there is no trace. */
export function topFrame(stack: string): string | undefined {
  const lines = linesOf(stack);
  const frames: Frame[] = [];
  for (let i = 0; i < lines.length; i++) {
    const found = frameAt(lines, i);
    if (found !== undefined) frames.push(found);
    if (found?.twoLines) i++;
  }
  // Python writes the place of the failure last.
  if (isPython(lines)) frames.reverse();
  const top = frames.find(({ runtime }) => !runtime) ?? frames[0];
  return top && mask(top.text);
}

/** Lines that introduce a trace and say nothing of the failure. */
const HEADING = /^(?:|stack backtrace:|Stack trace:|goroutine .*:)$/s;

/** The message of a text that may hold a trace: what stands before the first frame, in Python the last line. */
export function messageOf(text: string): string {
  if (!text.includes("\n")) return text;
  const lines = linesOf(text);
  const last = isPython(lines) ? lines.findLast((line) => line.trim() !== "" && !/^[ \t]/.test(line)) : undefined;
  if (last !== undefined) return last;
  const first = lines.findIndex((_, i) => frameAt(lines, i) !== undefined);
  const head = lines.slice(0, Math.max(0, first)).filter((line) => !HEADING.test(line.trim()));
  return head.length > 0 ? head.join("\n") : text;
}
