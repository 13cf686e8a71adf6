/**
 * Where a command reads and writes. What it prints for people has every control character spelled out, so that a payload
 * or a receiver's error text cannot steer a terminal; JSON is exact when a program reads it.
 */
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { escapeControl } from "../observe/log.ts";

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Whether a person is reading. */
  readonly tty: boolean;
  readonly color: boolean;
  out(text: string): void;
  err(text: string): void;
  /** Everything on standard input; null when a person would have to type it. */
  stdin(): Promise<Buffer | null>;
  /** What a person types; null when nobody sits there. */
  ask(question: string): Promise<string | null>;
}

export function processIo(): Io {
  const { stdin, stdout, stderr, env } = process;
  // A reader that went away (`| head`) is not an error of ours.
  stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  return {
    env,
    cwd: process.cwd(),
    tty: stdout.isTTY === true,
    color: stdout.isTTY === true && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb",
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    async stdin() {
      if (stdin.isTTY) return null;
      const chunks: Buffer[] = [];
      for await (const chunk of stdin) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    },
    async ask(question) {
      if (!stdin.isTTY || !stderr.isTTY) return null;
      const lines = createInterface({ input: stdin, output: stderr });
      // Ctrl-D is no answer, and no answer is no.
      const closed = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
      const typed = await Promise.race([lines.question(escapeControl(question)), closed]);
      lines.close();
      return typed.trim();
    },
  };
}

/** Lines for people. */
export function say(io: Io, ...lines: string[]): void {
  io.out(`${lines.map(escapeControl).join("\n")}\n`);
}

export function complain(io: Io, ...lines: string[]): void {
  io.err(`${lines.map(escapeControl).join("\n")}\n`);
}

/** JSON text: as it is for a program; harmless, and still the same JSON, on a terminal. */
export function printJson(io: Io, text: string): void {
  io.out(`${io.tty ? escapeControl(text) : text}\n`);
}

/** Columns as wide as what stands in them; the last one as long as it likes. */
export function table(io: Io, heads: readonly string[], rows: readonly (readonly string[])[]): void {
  const safe = rows.map((row) => row.map((cell) => escapeControl(cell)));
  const widths = heads.map((head, i) => Math.max(head.length, ...safe.map((row) => (row[i] ?? "").length)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd();
  const head = line(heads.map((one) => one.toUpperCase()));
  io.out(`${[io.color ? `\u001b[1m${head}\u001b[22m` : head, ...safe.map(line)].join("\n")}\n`);
}

/** The text that an option, a file or standard input holds; a string says what is wrong. */
export async function readInput(io: Io, file: string | undefined): Promise<{ text: string } | { fault: string }> {
  try {
    const bytes = file === undefined || file === "-" ? await io.stdin() : await readFile(file);
    if (bytes === null) return { fault: "nothing was given: use an option, a file, or standard input" };
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch (error) {
    const fault = error instanceof TypeError ? "it is not valid UTF-8" : error instanceof Error ? error.message : String(error);
    return { fault };
  }
}
