/** Where a command reads and writes, and what its exit code says. Nothing that it prints for people can steer a terminal. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { buffer } from "node:stream/consumers";
import { errorText } from "../message/errors.ts";
import { escapeControl } from "../observe/log.ts";

/** The numbers are documented in the README and do not change. */
export const EXIT = {
  ok: 0,
  failed: 1,
  /** Wrong arguments, a wrong configuration or no confirmation: nothing was tried. */
  usage: 2,
  /** check-redis: nobody answered, so nothing could be examined. */
  unreachable: 2,
  notFound: 3,
  conflict: 4,
  /** verify: neither whole nor broken, because something could not be looked at. */
  notProven: 5,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export function exitCodeOf(status: number, code: string): ExitCode {
  if (status === 404 || code === "unknown_topic") return EXIT.notFound;
  if (status === 409 || code === "key_conflict") return EXIT.conflict;
  return status === 400 || status === 413 ? EXIT.usage : EXIT.failed;
}

export class Stop extends Error {
  readonly exit: ExitCode;

  constructor(text: string, exit: ExitCode = EXIT.usage) {
    super(text);
    this.exit = exit;
  }
}

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly tty: boolean;
  readonly color: boolean;
  /** Columns of the terminal; null: a program reads, and gets everything in full. */
  readonly width: number | null;
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
    // 80: of a terminal that does not say.
    width: stdout.isTTY ? stdout.columns || 80 : null,
    color: stdout.isTTY === true && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb",
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    async stdin() {
      return stdin.isTTY ? null : buffer(stdin);
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

const lined = (lines: readonly string[]): string => `${lines.map(escapeControl).join("\n")}\n`;
export const say = (io: Io, ...lines: string[]): void => io.out(lined(lines));
export const complain = (io: Io, ...lines: string[]): void => io.err(lined(lines));

/** JSON text: as it is for a program; harmless, and still the same JSON, on a terminal. */
export function printJson(io: Io, text: string): void {
  io.out(`${io.tty ? escapeControl(text) : text}\n`);
}

/** For a program the value as JSON (text is JSON already), for people in words. All is well then, and the exit code may say so. */
export function tell({ io, json }: { readonly io: Io; readonly json: boolean }, value: unknown, words: () => void): ExitCode {
  if (json) printJson(io, typeof value === "string" ? value : JSON.stringify(value));
  else words();
  return EXIT.ok;
}

export async function readInput(io: Io, file: string | undefined, what: string): Promise<string> {
  try {
    const bytes = file === undefined || file === "-" ? await io.stdin() : await readFile(resolve(io.cwd, file));
    if (bytes === null) throw new Error("nothing was given: use an option, --file, or standard input");
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new Stop(`no ${what}: ${error instanceof TypeError ? "it is not valid UTF-8" : errorText(error)}`);
  }
}
