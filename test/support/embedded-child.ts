/**
 * Children that use the embedded server, and places for its data, for the fault suites: every child and every server that a
 * test leaves behind is ended, and its folder removed, whatever the test did.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmod, chown, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { identify } from "../../src/platform/process-identity.ts";
import { startableDist } from "./build.ts";
import { copyTemplate } from "./embedded-template.ts";
import { roomyMemory } from "./roomy-memory.ts";

export const NOBODY = 65_534;
export const asRoot = process.getuid?.() === 0;
const SCRIPT = join(dirname(fileURLToPath(import.meta.url)), "..", "faults", "embedded-child.mjs");

export interface Fact {
  readonly type: "log" | "ready" | "moved" | "acked" | "closing" | "closed" | "done" | "failed" | "interrupted";
  readonly [name: string]: unknown;
}

export interface Child {
  readonly process: ChildProcess;
  readonly facts: Fact[];
  /** The first fact of that type; rejects when the process ends without it. */
  fact(type: Fact["type"]): Promise<Fact>;
  readonly ended: Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Asks it to close and waits until it has ended. */
  close(): Promise<void>;
}

export interface ChildOptions {
  readonly mode: "hold" | "write" | "churn";
  readonly dataDir: string;
  readonly nativeDir?: string;
  readonly round?: number;
  readonly times?: number;
  readonly uid?: number;
  /** A program that runs the child inside of something, with its arguments. */
  readonly prefix?: readonly string[];
}

const children = new Set<ChildProcess>();
const folders = new Set<string>();

export async function startChild({ uid, prefix = [], ...options }: ChildOptions): Promise<Child> {
  const dist = await startableDist();
  const user = uid === undefined ? {} : { uid, gid: uid };
  // A group of its own, so that a test can signal it as a terminal would.
  const command = [...prefix, process.execPath, SCRIPT, JSON.stringify({ dist, ...options })];
  const child = spawn(command[0]!, command.slice(1), {
    ...user,
    cwd: "/",
    stdio: "pipe",
    detached: true,
  });
  children.add(child);
  const facts: Fact[] = [];
  let stderr = "";
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const run of waiting) run();
  };
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    if (!line.endsWith("}")) return; // cut by the kill
    facts.push(JSON.parse(line));
    wake();
  });
  let over = false;
  const ended = new Promise<void>((resolve) => {
    child.on("close", () => {
      over = true;
      children.delete(child);
      wake();
      resolve();
    });
  });
  const fact = (type: Fact["type"]): Promise<Fact> =>
    new Promise((resolve, reject) => {
      const look = () => {
        const found = facts.find((candidate) => candidate.type === type);
        if (!found && !over) return;
        waiting.delete(look);
        if (found) resolve(found);
        else reject(new Error(`the child ended without "${type}": ${JSON.stringify(facts.slice(-3))} ${stderr}`));
      };
      waiting.add(look);
      look();
    });
  return {
    process: child,
    facts,
    fact,
    ended,
    async kill(signal = "SIGKILL") {
      child.kill(signal);
      await ended;
    },
    async close() {
      child.stdin.write("close\n");
      await fact("closed");
      await ended;
    },
  };
}

/** An empty folder that an unprivileged server can reach; `owner` for a child that runs as another user. */
export async function dataFolder(owner?: number, place = tmpdir()): Promise<string> {
  const folder = await mkdtemp(join(place, "makegood-embedded-"));
  folders.add(folder);
  await chmod(folder, 0o755);
  if (owner !== undefined) await chown(folder, owner, owner);
  return folder;
}

/** Like `dataFolder`, with data already made. */
export async function preparedFolder(): Promise<string> {
  const folder = await dataFolder(undefined, await roomyMemory());
  await copyTemplate(folder);
  return folder;
}

export async function postmasterOf(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, "pgdata", "postmaster.pid"), "utf8").catch(() => "");
  const pid = Number(text.split("\n")[0]);
  if (!(pid > 0) || pid === process.pid) return undefined;
  const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return command.includes(dataDir) ? pid : undefined;
}

export async function query(url: string, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return (await client.query(text, values)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** A zombie does not run: an orphan's new parent may be slow to collect it. */
export async function runs(pid: number): Promise<boolean> {
  return (await identify(pid)) !== undefined;
}

export async function until(what: string, condition: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await sleep(10);
  }
}

export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

/** For afterEach. Ends only what this worker started: its children, and the servers on its own folders. */
export async function endAll(): Promise<void> {
  for (const child of children) child.kill("SIGKILL");
  await until("children end", () => children.size === 0);
  for (const folder of folders) {
    for (const dataDir of [folder, join(folder, "data")]) {
      const pid = await postmasterOf(dataDir);
      if (pid === undefined) continue;
      process.kill(pid, "SIGQUIT");
      await until("the server ends", async () => !(await runs(pid))).catch(() => process.kill(pid, "SIGKILL"));
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    folders.delete(folder);
  }
}
