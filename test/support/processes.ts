/**
 * Real processes for the fault suites: the built command line, or a worker with function sinks of our own, to be stopped,
 * paused and killed by signals. Whatever a test leaves behind is ended after its file.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { atEnd } from "./at-end.ts";
import { startableDist } from "./build.ts";
import { roomyMemory } from "./roomy-memory.ts";

const WORKER = join(dirname(fileURLToPath(import.meta.url)), "..", "faults", "worker-child.mjs");

export interface Fact {
  readonly [name: string]: unknown;
}

export interface Process {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Every JSON line it wrote. */
  readonly facts: Fact[];
  readonly stderr: () => string;
  /** Waits for a line that fits; rejects when the process ends without it. */
  fact(fits: (fact: Fact) => boolean, ms?: number): Promise<Fact>;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly over: boolean;
  /** Sends a signal without waiting. */
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal and waits until it has ended. */
  end(signal?: NodeJS.Signals): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

const running = new Set<Process>();
const folders: string[] = [];

atEnd(async () => {
  for (const one of running) one.signal("SIGCONT");
  await Promise.all([...running].map((one) => one.end("SIGKILL")));
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

/** An empty directory that an unprivileged server process can enter. */
export async function workspace(): Promise<string> {
  const folder = await mkdtemp(join(await roomyMemory(), "makegood-fault-"));
  await chmod(folder, 0o755);
  folders.push(folder);
  return folder;
}

/** `makegood <args>` from the built sources, or those of another version; nothing of our own environment leaks in. */
export async function startCli(
  args: readonly string[],
  env: Record<string, string> = {},
  cwd?: string,
  dist?: string,
): Promise<Process> {
  const main = join(dist ?? (await startableDist()), "cli", "main.js");
  return start([main, ...args], env, cwd ?? (await workspace()));
}

export interface WorkerOptions {
  readonly url: string;
  readonly schema: string;
  /** What its topics do; see test/faults/worker-child.mjs. */
  readonly topics: readonly Fact[];
  readonly [option: string]: unknown;
}

/** A worker process on the built sources with sinks of our own. */
export async function startWorker(options: WorkerOptions, nodeFlags: readonly string[] = []): Promise<Process> {
  const dist = await startableDist();
  const worker = await start([...nodeFlags, WORKER, JSON.stringify({ dist, ...options })], {}, tmpdir());
  await worker.fact(({ type }) => type === "ready");
  return worker;
}

/** Any script of ours on the built sources; it gets `dist` and the options as one JSON argument. */
export async function startScript(path: string, options: Fact): Promise<Process> {
  return start([path, JSON.stringify({ dist: await startableDist(), ...options })], {}, tmpdir());
}

/** A shell command that sets the stage (a limit, say) and becomes the program that it is given as `$0` and `$@`. */
export async function startShell(command: string, args: readonly string[]): Promise<Process> {
  return start(["-c", command, ...args], {}, tmpdir(), "/bin/sh");
}

async function start(
  args: readonly string[],
  env: Record<string, string>,
  cwd: string,
  program = process.execPath,
): Promise<Process> {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(program, args, { cwd, env: { PATH, HOME, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const facts: Fact[] = [];
  const waiting = new Set<() => void>();
  let stderr = "";
  let rest = "";
  let over = false;
  const wake = () => {
    for (const look of waiting) look();
  };
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) facts.push(parse(line));
    wake();
  });
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("error", (error) => {
      stderr += String(error);
    });
    child.once("close", (code, signal) => {
      over = true;
      running.delete(one);
      wake();
      resolve({ code, signal });
    });
  });
  const fact = (fits: (fact: Fact) => boolean, ms = 60_000): Promise<Fact> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => finish(new Error(`not within ${ms} ms: ${fits}`)), ms);
      const finish = (error: Error, found?: Fact) => {
        clearTimeout(timer);
        waiting.delete(look);
        if (found) resolve(found);
        else reject(new Error(`${error.message}; ${JSON.stringify(facts.slice(-3))} ${stderr}`));
      };
      const look = () => {
        const found = facts.find(fits);
        if (found) finish(new Error(), found);
        else if (over) finish(new Error(`it ended without ${fits}`));
      };
      waiting.add(look);
      look();
    });
  const one: Process = {
    pid: child.pid ?? 0,
    child,
    facts,
    stderr: () => stderr,
    fact,
    ended,
    get over() {
      return over;
    },
    signal: (signal) => void child.kill(signal),
    end(signal = "SIGKILL") {
      child.kill(signal);
      return ended;
    },
  };
  running.add(one);
  return one;
}

function parse(line: string): Fact {
  try {
    return JSON.parse(line) as Fact;
  } catch {
    return { type: "text", line };
  }
}

export async function until(what: string, condition: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await sleep(20);
  }
}

/** The resident memory of a process in MB; 0 when it is gone. */
export async function residentMb(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) / 1024;
}
