/**
 * Runs an example to its end, as a new user would. One that fails shows what it said: its lines tell which of its claims did not hold.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "vitest";

/** `name` is its folder under `examples`. Returns what it printed. */
export async function runExample(name: string, env: NodeJS.ProcessEnv): Promise<string> {
  const script = fileURLToPath(new URL(`../../examples/${name}/run.mjs`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script], { env }).catch((error) =>
    expect.fail(`${name}: ${error.message}\n${error.stdout}${error.stderr}`),
  );
  return stdout;
}
