/**
 * The command line against a running server and against the store itself: the same answers, exit codes that say what
 * happened, output that no payload can turn into a command for the terminal (attack 17). Most commands run in the test's own process; that a
 * process prints the same and ends with the same code is shown once for each way.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makegood, type Running, removeWorkspaces, running, workspace } from "./support.ts";
import { makegoodHere } from "./terminal.ts";

let cwd: string;
let server: Running;
let url: string;

beforeAll(async () => {
  cwd = await workspace({ prepared: true });
  server = await running(cwd, ["serve"], { MAKEGOOD_PORT: "0" });
  const { url: found } = JSON.parse(await server.line(/"listening"/)) as { url: string };
  url = found;
}, 120_000);
afterAll(async () => {
  expect(await server.stop()).toBe(0);
  await removeWorkspaces();
}, 60_000);

const remote = (...args: string[]) => makegoodHere(cwd, args, { MAKEGOOD_URL: url });
const local = (...args: string[]) => makegoodHere(cwd, args);
const asProcess = (way: string, ...args: string[]) => makegood(cwd, args, way.includes("URL") ? { MAKEGOOD_URL: url } : {});

/** Both ways of reaching the store must behave alike. */
const ways = [
  ["over MAKEGOOD_URL", remote],
  ["on the store itself", local],
] as const;

describe.each(ways)("%s", (way, run) => {
  const topic = way.includes("URL") ? "cli/remote" : "cli/local";
  let id: string;

  it("sets, lists, shows, pauses and resumes a topic", async () => {
    expect(await run("topics", "set", topic, "--kind", "notify")).toMatchObject({ code: 0, stdout: `${topic} is set\n` });
    expect((await run("topics", "pause", topic)).stdout).toBe(`${topic} is paused\n`);
    const listed = await run("topics", "list");
    expect(listed.stdout).toMatch(new RegExp(`^TOPIC +SINK +STATE[\\s\\S]*${topic} +notify +paused +api`));
    expect(JSON.parse((await run("topics", "show", topic)).stdout)).toMatchObject({ name: topic, paused: true });
    expect(JSON.parse((await run("--json", "topics", "list")).stdout)).toMatchObject({ next_cursor: null });
  });

  it("enqueues, once", async () => {
    const first = await run("enqueue", topic, "--payload", '{"n":1}', "--key", "k1");
    expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/^accepted [0-9a-f-]{36}\n$/) });
    id = first.stdout.slice(9, 45);
    const again = await asProcess(way, "enqueue", topic, "--payload", '{"n":1}', "--key", "k1");
    expect(again).toEqual({ code: 0, stdout: `already accepted ${id}\n`, stderr: "" });
    const conflict = await asProcess(way, "enqueue", topic, "--payload", '{"n":2}', "--key", "k1");
    expect(conflict).toMatchObject({ code: 4, stderr: expect.stringContaining("key_conflict") });
    expect(await run("enqueue", "no/such", "--payload", "1")).toMatchObject({ code: 3 });
  });

  it("lists and shows messages", async () => {
    const listed = await run("messages", "list", "--topic", topic, "--json");
    expect((JSON.parse(listed.stdout) as { data: unknown[] }).data).toHaveLength(1);
    const table = await run("messages", "list", "--topic", topic);
    expect(table.stdout).toMatch(new RegExp(`^ID +TOPIC[^\\n]*\\n${id} +${topic} +pending \\(topic_paused\\)`));
    expect((await run("messages", "show", id)).stdout).toContain('payload\n{"n":1}\n');
    expect(await run("messages", "show", "018f0000-0000-7000-8000-000000000000")).toMatchObject({ code: 3, stdout: "" });
  });

  it("refuses, discards and keeps the history", async () => {
    expect(await run("messages", "replay", id, "--reason", "why not")).toMatchObject({ code: 4 });
    expect(await run("topics", "delete", topic, "--yes")).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("topic_in_use"),
    });
    expect((await run("messages", "discard", id, "--reason", "a test")).stdout).toBe(`${id} is now dead (discarded)\n`);
    const shown = await run("messages", "show", id);
    expect(shown.stdout).toMatch(way.includes("URL") ? /local +discard +a test/ : /cli\S* +discard +a test/);
    expect((await run("topics", "delete", topic, "--yes")).code).toBe(0);
    expect((await run("topics", "show", topic)).code).toBe(3);
  });
});

describe("hostile payloads (fault 47)", () => {
  const zoo =
    '{"esc":"\\u001b[31m","n":18446744073709551616,"e":1e400,"a":1,"a":2,"raw":"\u009b\u202e\u007f","s":"\\ud800","__proto__":{}}';

  it("survive, exactly in JSON and harmless for a person", async () => {
    await remote("topics", "set", "cli/zoo", "--kind", "notify");
    await remote("topics", "pause", "cli/zoo");
    const sent = await makegood(cwd, ["enqueue", "cli/zoo", "--json"], { MAKEGOOD_URL: url }, zoo);
    const { id } = JSON.parse(sent.stdout) as { id: string };
    const exact = await remote("messages", "show", id, "--json");
    expect(exact.stdout).toContain(`"payload":${zoo}}`);
    const shown = await remote("messages", "show", id);
    expect(shown.stdout).toContain("18446744073709551616");
    expect(shown.stdout).toContain('"a":1,"a":2');
    expect(shown.stdout.replaceAll("\n", "")).toMatch(/^[^\p{Cc}\u202e]*$/u);
  });

  it("cannot break out of their place in the envelope", async () => {
    const injected = await remote("enqueue", "cli/zoo", "--payload", '1,"key":"injected"');
    expect(injected).toMatchObject({ code: 2, stderr: expect.stringContaining("not valid JSON") });
    await writeFile(join(cwd, "bad.bin"), Buffer.from([0x22, 0xc3, 0x28, 0x22]));
    expect(await asProcess("over MAKEGOOD_URL", "enqueue", "cli/zoo", "--file", "bad.bin")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("UTF-8"),
    });
  });
});

describe("wrong arguments", () => {
  it.each([
    [["nonsense"], /unknown command/],
    [["messages", "list", "--nonsense"], /unknown option/],
    [["messages", "list", "--status", "gone"], /Allowed choices/],
    [["messages", "replay", "x"], /--reason/],
    [["messages", "show"], /missing required argument/],
    [["messages", "list", "--limit", "0"], /limit/],
    [["enqueue", "a/b", "--payload", "1", "--priority", "high"], /whole number/],
    [["enqueue", "a/b", "--payload", "1", "--file", "x"], /either/],
    [["enqueue", "a/b", "--file", "missing.json"], /ENOENT/],
    [["topics", "set", "a/b", "--kind", "carrier-pigeon"], /sink\.kind/],
    [["work", "--topics", "UPPER"], /pattern/],
    [["serve", "--port", "99999"], /--port/],
  ])("%j exits 2 and says why", async (args, words) => {
    expect(await makegoodHere(cwd, args, { MAKEGOOD_URL: url })).toMatchObject({ code: 2, stderr: expect.stringMatching(words) });
  });

  it("are not help and version", async () => {
    expect(await makegood(cwd, ["nonsense"])).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown command") });
    expect(await makegood(cwd, ["--help"])).toMatchObject({ code: 0, stdout: expect.stringContaining("Exit codes") });
    expect(await local("--version")).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  });

  it("and a server that is not there exits 1", async () => {
    const gone = await makegood(cwd, ["messages", "list"], { MAKEGOOD_URL: "http://127.0.0.1:1" });
    expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot reach http://127.0.0.1:1") });
  });
});

describe("the schema", () => {
  it("is printed without a database, and its status is shown", async () => {
    const printed = await makegoodHere(cwd, ["migrate", "print"], {
      DATABASE_URL: "postgres://127.0.0.1:1/none",
      MAKEGOOD_SCHEMA: "other",
    });
    expect(printed).toMatchObject({ code: 0, stdout: expect.stringContaining('create schema if not exists "other"') });
    expect(await local("migrate", "status")).toMatchObject({ code: 0, stdout: expect.stringMatching(/0001 +kernel +yes/) });
    expect(await local("migrate", "up")).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing to do") });
  });
});

describe("doctor", () => {
  it("finds everything well, from both sides", async () => {
    // A server that has just begun has proven nothing yet.
    expect((await remote("verify")).code).toBe(0);
    for (const run of [remote, local]) {
      const told = await run("doctor", "--json");
      const { status, checks } = JSON.parse(told.stdout) as { status: string; checks: { name: string; status: string }[] };
      expect([told.code, status, checks.filter((check) => check.status !== "ok")]).toEqual([0, "ok", []]);
    }
    expect((await local("doctor")).stdout).toMatch(/ok +fsync +on\n/);
    expect((await local("doctor")).stdout).toMatch(/ok +connections +\d+ of \d+ in use\n/);
  });

  it("fails where nothing answers", async () => {
    const told = await makegood(cwd, ["doctor"], { DATABASE_URL: "postgres://127.0.0.1:1/none" });
    expect(told).toMatchObject({ code: 1, stdout: expect.stringMatching(/fail +store/) });
  });
});
