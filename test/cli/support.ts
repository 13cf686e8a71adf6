/**
 * The built command line as real processes: one call that runs to its end, and one that keeps running until it is stopped.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { startableDist } from "../support/build.ts";
import { copyTemplate } from "../support/embedded-template.ts";
import { roomyMemory } from "../support/roomy-memory.ts";

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Nothing of the caller's own configuration may leak in. */
function environment(env: Record<string, string>): Record<string, string> {
  const { PATH = "", HOME = "" } = process.env;
  return { PATH, HOME, ...env };
}

const made: string[] = [];

/** For afterAll: removes every directory that workspace() made in this file. */
export async function removeWorkspaces(): Promise<void> {
  for (const path of made.splice(0)) await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

/** A directory that an unprivileged server process can reach, too; `prepared`: with the data of an embedded server that was never used. */
export async function workspace({ prepared = false } = {}): Promise<string> {
  const path = await mkdtemp(join(await roomyMemory(), "makegood-cli-"));
  await chmod(path, 0o755);
  made.push(path);
  if (prepared) {
    await mkdir(join(path, ".makegood"));
    await copyTemplate(join(path, ".makegood"));
  }
  return path;
}

async function start(cwd: string, args: readonly string[], env: Record<string, string>): Promise<ChildProcess> {
  const main = join(await startableDist(), "cli/main.js");
  return spawn(process.execPath, [main, ...args], { cwd, env: environment(env), stdio: ["pipe", "pipe", "pipe"] });
}

export async function makegood(
  cwd: string,
  args: readonly string[],
  env: Record<string, string> = {},
  stdin: string | Buffer = "",
): Promise<Ran> {
  const child = await start(cwd, args, env);
  const output = collect(child);
  child.stdin?.end(stdin);
  const code = await ended(child);
  return { code, ...output };
}

export interface Running {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly exit: Promise<number | null>;
  /** Waits until a line of the log matches and returns it. */
  line(pattern: RegExp, timeoutMs?: number): Promise<string>;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export async function running(cwd: string, args: readonly string[], env: Record<string, string> = {}): Promise<Running> {
  const child = await start(cwd, args, env);
  const output = collect(child);
  const exit = ended(child);
  return {
    child,
    output,
    exit,
    async line(pattern, timeoutMs = 30_000) {
      const until = Date.now() + timeoutMs;
      for (;;) {
        const found = output.stdout.split("\n").find((line) => pattern.test(line));
        if (found !== undefined) return found;
        if (child.exitCode !== null || Date.now() > until) {
          throw new Error(`no line like ${pattern} in\n${output.stdout}\n${output.stderr}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    stop(signal = "SIGTERM") {
      child.kill(signal);
      return exit;
    },
  };
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: "", stderr: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  return output;
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code));
  });
}
