/**
 * The command line inside the test's own process: a terminal (or none) whose person answers what the test says, with everything that was
 * printed. Quick enough for many commands; what a process is about is tested with real ones.
 */
import type { Io } from "../../src/cli/io.ts";
import { runProgram } from "../../src/cli/program.ts";

export interface Told {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** What was asked, in order. */
  readonly asked: readonly string[];
}

export interface TerminalOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
  /** A person sits there and types these; null: nobody does. */
  readonly answers?: readonly string[] | null;
  /** Columns of the terminal; absent: 100 where a person sits, else everything in full. */
  readonly width?: number;
  readonly color?: boolean;
}

export async function terminal(args: readonly string[], options: TerminalOptions): Promise<Told> {
  const { env, cwd = "/nonexistent", stdin = "", answers = null } = options;
  const told = { stdout: "", stderr: "", asked: [] as string[] };
  const typed = [...(answers ?? [])];
  const io: Io = {
    env,
    cwd,
    tty: answers !== null,
    color: options.color ?? false,
    width: options.width ?? (answers === null ? null : 100),
    out: (text) => {
      told.stdout += text;
    },
    err: (text) => {
      told.stderr += text;
    },
    stdin: async () => Buffer.from(stdin),
    ask: async (question) => {
      told.asked.push(question);
      return answers === null ? null : (typed.shift() ?? "");
    },
  };
  return { code: await runProgram(io, args), ...told };
}

/** The same as `makegood` of support.ts, without a process. */
export const makegoodHere = (cwd: string, args: readonly string[], env: Record<string, string> = {}, stdin = ""): Promise<Told> =>
  terminal(args, { cwd, env, stdin });
