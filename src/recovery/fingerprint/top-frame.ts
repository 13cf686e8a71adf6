/**
 * The frame of a stack trace where the failure arose, and the message in front of or behind the trace. Knows the traces of
 * JavaScript, Python, Java, Go, C#, Ruby, PHP and Rust; of any other text it says nothing. Looks at a bounded part of the text.
 */
import { mask } from "./mask.ts";
import { type Frame, frameOf } from "./trace-lines.ts";

const TRACE_CHARS_MAX = 65_536;
const LINES_MAX = 400;
const LINE_CHARS_MAX = 500;

function linesOf(text: string): string[] {
  return text
    .slice(0, TRACE_CHARS_MAX)
    .split("\n", LINES_MAX)
    .map((line) => line.slice(0, LINE_CHARS_MAX));
}

const isPython = (lines: readonly string[]): boolean =>
  lines.some((line) => line.startsWith("Traceback (most recent call last)"));

/** "function file", masked, of the first frame that is the program's own; undefined when there is no trace. */
export function topFrame(stack: string): string | undefined {
  const lines = linesOf(stack);
  const frames: Frame[] = [];
  for (let i = 0; i < lines.length; i++) {
    const found = frameOf((lines[i] ?? "").trim(), (lines[i + 1] ?? "").trim());
    if (found === undefined) continue;
    frames.push(found);
    if (found.twoLines) i++;
  }
  // Python writes the place of the failure last.
  if (frames.length > 0 && isPython(lines)) frames.reverse();
  const top = frames.find(({ runtime }) => !runtime) ?? frames[0];
  return top === undefined ? undefined : mask(`${top.function} ${top.file}`.trim());
}

/** The message of a text that may hold a trace: what stands before the first frame, in Python the last line. */
export function messageOf(text: string): string {
  if (!text.includes("\n")) return text;
  const lines = linesOf(text);
  if (isPython(lines)) {
    const last = lines.findLast((line) => line.trim() !== "" && line[0] !== " " && line[0] !== "\t");
    if (last !== undefined) return last;
  }
  const first = lines.findIndex((line, i) => frameOf(line.trim(), (lines[i + 1] ?? "").trim()) !== undefined);
  if (first < 0) return text;
  const head = lines.slice(0, first).filter((line) => !isHeading(line.trim()));
  return head.length > 0 ? head.join("\n") : text;
}

/** Lines that introduce a trace and say nothing of the failure. */
function isHeading(line: string): boolean {
  return (
    line === "" || line === "stack backtrace:" || line === "Stack trace:" || (line.startsWith("goroutine ") && line.endsWith(":"))
  );
}
