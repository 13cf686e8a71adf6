/**
 * Runs a program to its end. What it says appears at once, or, where several run side by side, is kept and shown in one piece.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const REPO = fileURLToPath(new URL("../..", import.meta.url));

/** `kept`: its output is returned as text instead of shown. */
export function runProgram(args, { env = {}, kept = false } = {}) {
  const stdio = kept ? ["ignore", "pipe", "pipe"] : "inherit";
  const child = spawn(process.execPath, args, { cwd: REPO, env: { ...process.env, ...env }, stdio });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => resolve({ status, output }));
  });
}
