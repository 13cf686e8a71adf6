/**
 * A script of the tests that stops before a statement and says so, or says that it is done: it is killed with SIGKILL at its first word,
 * which is what this answers.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export async function killedAtItsWord(script: string, options: object): Promise<{ type: string; before?: string }> {
  const child = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: ["ignore", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += String(text);
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  for await (const line of createInterface({ input: child.stdout })) {
    child.kill("SIGKILL");
    await gone;
    return JSON.parse(line) as { type: string };
  }
  throw new Error(`the child ended without a word: ${stderr}`);
}
