/**
 * The completion of bash, in a real bash: the script is sourced, and its function is asked as the shell would.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, expect, it } from "vitest";
import { terminal } from "./terminal.ts";

let script = "";
beforeAll(async () => {
  const told = await terminal(["completion", "bash"], { env: {} });
  expect([told.code, told.stderr]).toEqual([0, ""]);
  script = told.stdout;
});

async function completed(...words: string[]): Promise<string[]> {
  const line = words.map((word) => `'${word}'`).join(" ");
  const ask = `${script}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _makegood; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)("bash", ["--norc", "-uc", ask]);
  return stdout.split("\n").filter((word) => word !== "");
}

it("completes commands, options and choices", async () => {
  expect(await completed("makegood", "mess")).toEqual(["messages"]);
  expect(await completed("makegood", "")).toEqual(expect.arrayContaining(["serve", "topics", "execute", "completion", "--json"]));
  expect(await completed("makegood", "messages", "re")).toEqual(["replay", "resolve", "reschedule"]);
  expect(await completed("makegood", "messages", "list", "--sta")).toEqual(["--status"]);
  expect(await completed("makegood", "messages", "list", "--status", "d")).toEqual(["delivered", "dead"]);
  expect(await completed("makegood", "--json", "redrive", "items", "x", "--state", "he")).toEqual(["healed"]);
  expect(await completed("makegood", "execute", "12", "--can")).toEqual(["--canary"]);
  expect(await completed("makegood", "messages", "list", "--topic", "")).toEqual([]);
  expect(await completed("makegood", "topics", "set", "a/b", "--file", "/etc/passw")).toContain("/etc/passwd");
});
