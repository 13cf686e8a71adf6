// What the examples share: a line for each thing that is proved, waiting with a limit, a database for the run, processes that can be
// killed, and clean-up whatever happens. Nothing here is about Makegood.
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { load } from "./package.mjs";

const undo = [];
let proved = 0;
let failed = 0;

export const say = (text) => console.log(text);
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** Done at the end, the last one first, also when something went wrong. */
export const atTheEnd = (step) => void undo.push(step);

export function prove(what, holds, detail = "") {
  if (holds) proved++;
  else failed++;
  say(`${holds ? "ok  " : "FAIL"} ${what}${detail === "" ? "" : ` (${detail})`}`);
}

export async function until(what, condition) {
  for (let i = 0; i < 1_200; i++) {
    if (await condition()) return;
    await sleep(50);
  }
  throw new Error(`not within 60 s: ${what}`);
}

/** Runs the example and ends the process with what came of it: exit code 0 only if all of it holds. */
export async function run(main) {
  try {
    await main();
  } catch (error) {
    failed++;
    console.error(error);
  } finally {
    for (const step of undo.reverse()) await step();
  }
  say(failed === 0 ? `${proved} of ${proved}: all of it holds` : `${failed} did not hold`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** The PostgreSQL of DATABASE_URL, or one from npm in a directory that goes away with the example. */
export async function database() {
  if (process.env.DATABASE_URL) return process.env.DATABASE_URL;
  const { startEmbedded } = await load("store/postgres/index.js");
  const home = mkdtempSync(join(tmpdir(), "makegood-example-"));
  // As root the embedded PostgreSQL runs under another user, who must be able to enter.
  chmodSync(home, 0o755);
  atTheEnd(() => rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
  const server = await startEmbedded({ dataDir: join(home, "data") });
  atTheEnd(() => server.close());
  return server.url;
}

/** A process of its own that writes JSON lines. `said` resolves with its next line that fits, and rejects if it ends before. */
export function startProcess(args, env, { log = "inherit", cwd = process.cwd() } = {}) {
  const child = spawn(process.execPath, args, { cwd, env, stdio: ["ignore", "pipe", log] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const listeners = new Set();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const fact = JSON.parse(line);
    for (const listener of [...listeners]) listener(fact);
  });
  const said = (fits) =>
    new Promise((resolve, reject) => {
      const listener = (fact) => {
        if (!fits(fact)) return;
        listeners.delete(listener);
        resolve(fact);
      };
      listeners.add(listener);
      child.once("exit", (code, signal) => reject(new Error(`the process ended (${code ?? signal})`)));
    });
  const end = (signal) => {
    child.kill(signal);
    return ended;
  };
  atTheEnd(() => end("SIGKILL"));
  return { said, end };
}
