/**
 * C8: what a Makegood in the caller's own process writes when nobody gave it a log, seen on the standard error of a real process.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createMakegood, createMemoryStore } from "../../src/index.ts";
import { builtDist } from "../support/build.ts";

let folder: string;
let door: string;

beforeAll(async () => {
  door = join(await builtDist(), "index.js");
  folder = await mkdtemp(join(tmpdir(), "makegood-log-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Runs a program with a topic that refuses everything and a notify sink; what it wrote to standard error. */
async function said(options: string, run = ""): Promise<string[]> {
  const program = join(folder, `${Math.random()}.mjs`);
  await writeFile(
    program,
    `import { createMakegood, createMemoryStore, reject, topic } from ${JSON.stringify(door)};
const bad = topic("shop/bad", { sink: () => reject("never\\u001b[2J") });
const tell = topic("shop/tell", { sink: { kind: "notify" } });
const mg = await createMakegood({ store: createMemoryStore(), topics: [bad, tell], pollMs: 10, recovery: false, ${options} });
await mg.enqueue(bad, { n: 1 });
await mg.enqueue(tell, { text: "look here" });
${run}
await mg.workOff();
await mg.close();
`,
  );
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "ignore", "pipe"] });
  let text = "";
  child.stderr.on("data", (chunk) => {
    text += chunk;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect([code, text]).toEqual([0, text]);
  return text.split("\n").filter((line) => line !== "");
}

const DEAD = /^\d{4}-\S+Z error a message became a dead letter .*topic=shop\/bad .*error=never\\u001b\[2J/;
const NOTICE = /^\d{4}-\S+Z warn {2}notify shop\/tell \S+: look here$/;

it("C8: without a log, dead letters and notices stand on standard error, one line each, and nothing else does", async () => {
  const lines = await said("");
  expect(lines.filter((line) => DEAD.test(line))).toHaveLength(1);
  expect(lines.filter((line) => NOTICE.test(line))).toHaveLength(1);
  expect(lines).toHaveLength(2);
});

it("C8: a level says how much; a notice is shown at any, and silence is silent", async () => {
  const [error, info, silent] = await Promise.all([said('log: "error"'), said('log: "info"'), said('log: "silent"')]);
  expect(error.map((line) => DEAD.test(line) || NOTICE.test(line))).toEqual([true, true]);
  expect(info.some((line) => line.includes(" info  worker started "))).toBe(true);
  expect(silent).toEqual([]);
});

it("C8: any log of the caller's is used instead, console among them", async () => {
  const lines = await said("log: console");
  expect(lines.some((line) => line.startsWith("a message became a dead letter "))).toBe(true);
  expect(lines).toContainEqual(expect.stringMatching(/^notify shop\/tell \S+: look here$/));
  expect(lines.some((line) => DEAD.test(line) || NOTICE.test(line))).toBe(false);
});

it("C8: of one kind ten lines a minute, and then how many more; notices are all written", async () => {
  const clock = `clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now(),
    after(ms, run) { const timer = setTimeout(run, ms / 60); return { cancel: () => clearTimeout(timer) }; } }`;
  const many = `for (let n = 0; n < 49; n++) { await mg.enqueue(bad, n); await mg.enqueue(tell, { text: "look here" }); }`;
  const lines = await said(clock, `${many} await mg.workOff(); await new Promise((resolve) => setTimeout(resolve, 1_500));`);
  expect(lines.filter((line) => DEAD.test(line))).toHaveLength(10);
  expect(lines.filter((line) => line.includes("dead letter: 40 more lines like this in the last minute"))).toHaveLength(1);
  expect(lines.filter((line) => NOTICE.test(line))).toHaveLength(50);
});

it("C8: what is no log is refused with what it may be", async () => {
  for (const log of ["loud", 3, {}, null, () => undefined] as never[]) {
    const made = createMakegood({ store: createMemoryStore(), log });
    await expect(made).rejects.toThrow(/log must be "silent", "debug", "info", "warn", "error", or an object with/);
  }
});
