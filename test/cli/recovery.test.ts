/**
 * The recovery commands: what they print for a person and for a program, what they ask before they touch anything, and which exit code
 * says what. A running server; the store itself, without a server, at the end.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type RecoveryServer, startRecoveryServer, TOKENS } from "../server/recovery-support.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { type TerminalOptions, terminal } from "./terminal.ts";

let scene: RecoveryServer;
let cwd: string;
beforeAll(async () => {
  scene = await startRecoveryServer();
  cwd = await mkdtemp(join(tmpdir(), "makegood-recovery-cli-"));
});
afterAll(async () => {
  await scene.close();
  await rm(cwd, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

const env = (person: keyof typeof TOKENS = "alice") => ({ MAKEGOOD_URL: scene.server.url, MAKEGOOD_TOKEN: TOKENS[person] });
const run = (args: readonly string[], more: Partial<TerminalOptions> = {}) => terminal(args, { env: env(), cwd, ...more });
const words = (text: string, more: Partial<TerminalOptions> = {}) => run(text.split(" "), more);
const fits = (text: string) => expect(text.split("\n").filter((line) => line.length > 100)).toEqual([]);
const QUICK = "--canary 0 --rate 1000 --ramp-from 1000";

describe("looking", () => {
  it("groups, candidates, rules and actions in tables that fit 100 columns, and as JSON", async () => {
    const { group, candidate } = await scene.deadGroup("cli/look", 2);
    const id = String(group.group_id);
    for (const [command, pattern] of [
      ["groups list --open", /^GROUP +OPEN +SEEN +LAST +CODE +TOPIC +TEMPLATE\n/],
      ["groups", new RegExp(`^${id} +2 +2 `, "m")],
      [`groups show ${id}`, /Why they are together:\n {2}\S/],
      [`groups occurrences ${id} --open`, /^AGO +SOURCE +MESSAGE/],
      ["candidates", new RegExp(`^${candidate.candidate_id} +${id} `, "m")],
      [`candidates show ${candidate.candidate_id} --provenance`, /touches 2 messages/],
      ["rules", /timeout_retry +90 +retry_exponential +85%/],
      ["actions --type skip", /^ACTION[^\n]+\nskip_task +skip /],
      ["rules show timeout_retry", /"score": 0.85/],
      ["actions show skip_task", /"action_code": "skip_task"/],
      ["redrive list", /^REDRIVE +STATUS/],
      [`suggest ${id}`, /^candidate +\d+, round 1/],
      ["evaluate --error-code TIMEOUT --message slow", /retry_exponential \(85%\)/],
    ] as const) {
      const told = await words(command, { width: 100 });
      expect([command, told.code, told.stderr]).toEqual([command, 0, ""]);
      expect(told.stdout).toMatch(pattern);
      fits(told.stdout);
    }
    const json = JSON.parse((await words("groups list --json")).stdout) as { data: unknown[]; next_cursor: null };
    expect(json.data).toContainEqual(expect.objectContaining({ group_id: group.group_id, occurrence_count: 2 }));
    expect(JSON.parse((await words("evaluate --error-code TIMEOUT --json")).stdout)).toMatchObject({ confidence: 0.85 });
  });

  it("OPEN counts dead letters that are open, and reports", async () => {
    const { group } = await scene.deadGroup("cli/open", 2);
    const [code, topic] = [String(group.error_code), "cli/open"];
    const payload = { error_type: code, raw: "reported", topic, sink: "other" };
    const { body } = await scene.as("alice", "POST", "/api/v1/recovery/ingest", { failure_payload: payload });
    const merged = await run(["groups", "merge", String(group.group_id), String(body.group_id), "--reason", "the same"]);
    expect([merged.code, merged.stderr]).toEqual([0, ""]);
    expect((await words("groups list --topic cli/open")).stdout).toMatch(new RegExp(`^${group.group_id} +3 +3 `, "m"));
    expect((await words("groups list --topic cli/open --reported")).stdout).toMatch(new RegExp(`^${group.group_id} `, "m"));
  });

  it("a failure's text cannot steer the terminal (attack 17)", async () => {
    const raw = "\u001b]0;owned\u0007\u009b31m\u202e evil";
    const { body } = await scene.as("alice", "POST", "/api/v1/recovery/ingest", {
      failure_payload: { error_type: "E\u001b[2J", raw, topic: "cli/steer" },
    });
    for (const command of ["groups list", `groups show ${body.group_id}`, `candidates show ${body.candidate_id}`]) {
      const { stdout } = await words(command, { answers: [] });
      expect(stdout.replaceAll("\n", "")).toMatch(/^[^\p{Cc}\u202e]*$/u);
    }
  });

  it("evaluate reads a trace from a file or from standard input", async () => {
    await writeFile(join(cwd, "trace.txt"), "Error: connect ECONNREFUSED 10.0.0.1:443\n    at Socket.connect (net.js:1:2)\n");
    expect((await run(["evaluate", "--file", join(cwd, "trace.txt"), "--json"])).code).toBe(0);
    expect((await words("evaluate --error-code X --file -", { stdin: "from a pipe" })).stdout).toContain("from a pipe");
    expect(await words("evaluate --file missing.txt")).toMatchObject({ code: 2, stderr: expect.stringContaining("ENOENT") });
    expect(await words("evaluate")).toMatchObject({ code: 2, stderr: expect.stringContaining("error_type") });
  });
});

describe("deciding", () => {
  it("approve and reject say what is missing and what comes next", async () => {
    const { candidate } = await scene.deadGroup("cli/decide", 1);
    const id = String(candidate.candidate_id);
    await scene.as("alice", "PATCH", `/api/v1/recovery/candidates/${id}`, { selected_action: "rollback_state" });
    expect((await words(`approve ${id}`)).stdout).toBe(`candidate ${id} is pending; 1 approval missing\n`);
    // The topic has no compensation sink, however many agree.
    expect(await words(`execute ${id} --yes`)).toMatchObject({ code: 4, stderr: expect.stringContaining("compensation") });
    await scene.as("alice", "PATCH", `/api/v1/recovery/candidates/${id}`, { selected_action: "skip_task" });
    expect(await words(`approve ${id} --if-version 999`)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("version_conflict"),
    });
    expect((await words(`approve ${id}`)).stdout).toBe(`candidate ${id} is approved\n  run it: makegood execute ${id}\n`);
    expect((await run(["reject", id, "--reason", "changed my mind"])).stdout).toBe(`candidate ${id} is rejected\n`);
    expect(await words(`approve ${id}`)).toMatchObject({ code: 4, stderr: expect.stringContaining("wrong_state") });
  });

  it("merge and split", async () => {
    const [one, two] = [await scene.deadGroup("cli/merge-a", 1), await scene.deadGroup("cli/merge-b", 2)];
    const [into, from] = [String(one.group.group_id), String(two.group.group_id)];
    expect(await words(`groups merge ${into} ${from}`)).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason") });
    expect(await words(`groups merge ${into} x --reason same`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("number of a group, or a failure_match_id"),
    });
    const merged = await run(["groups", "merge", into, from, "--reason", "the same receiver"]);
    expect([merged.code, merged.stdout]).toEqual([0, `group ${into} has 3 occurrences now\n`]);
    const payload = (raw: string) => ({ failure_payload: { error_type: "E1", raw, topic: "cli/split" } });
    const { body } = await scene.as("alice", "POST", "/api/v1/recovery/ingest", payload("cannot write to replica seven"));
    await scene.as("alice", "POST", "/api/v1/recovery/ingest", payload("cannot write to primary seven"));
    const split = await run(["groups", "split", String(body.group_id), "replica", "--reason", "another host", "--json"]);
    expect([split.code, (JSON.parse(split.stdout) as { moved: number }).moved]).toEqual([0, 1]);
    const rules = await words("groups rules", { width: 100 });
    const [, rule = ""] = /^(split-\w+) +split .*\[replica\] another/m.exec(rules.stdout) ?? [];
    expect(rule).not.toBe("");
    fits(rules.stdout);
    expect(await words(`groups rules --delete ${rule} --yes --if-version 9`)).toMatchObject({ code: 4 });
    expect(await words(`groups rules --delete ${rule} --yes`)).toMatchObject({
      code: 0,
      stdout: `group rule ${rule} is deleted\n`,
    });
    expect(await words(`groups rules --delete ${rule} --yes`)).toMatchObject({ code: 3 });
  });
});

describe("executing", () => {
  it("shows what it touches, asks a person, follows it with a bar, and exits by what became of it", async () => {
    const { candidate } = await scene.deadGroup("cli/run", 3);
    const id = String(candidate.candidate_id);
    await scene.as("alice", "PATCH", `/api/v1/recovery/candidates/${id}`, { selected_action: "retry_exponential" });
    const nobody = await words(`execute ${id}`);
    expect([nobody.code, nobody.stderr]).toEqual([2, expect.stringContaining("--yes")]);
    const no = await words(`execute ${id}`, { answers: ["n"] });
    expect([no.code, no.asked]).toEqual([2, ["Run retry_exponential on 3 messages? [y/N] "]]);
    expect(no.stdout).toMatch(/touches 3 messages of \d tenants?, the oldest \d+s old\n +3 {2}cli\/run\n/);
    expect(await scene.candidate(id)).toMatchObject({ execution_status: "pending" });
    const wrong = await words(`execute ${id} --confirm 7`);
    expect([wrong.code, wrong.stderr]).toEqual([4, expect.stringContaining("confirm")]);
    const unseen = await words(`execute ${id} --confirm 3 --seen nothing`);
    expect([unseen.code, unseen.stderr]).toEqual([2, expect.stringContaining("seen")]);
    scene.receiver.status = 200;
    const yes = await words(`execute ${id} ${QUICK} --wait`, { answers: ["y"] });
    expect([yes.code, yes.stderr]).toEqual([0, ""]);
    expect(yes.stdout).toContain("\r\u001b[K[########################] 100% done: 3 of 3 healed");
    expect(yes.stdout).toContain("3 of 3 messages healed, 0 failed, 0 skipped");
  });

  it("exits 1 when what was sent died again, one line for each change where nobody watches", async () => {
    const { candidate } = await scene.deadGroup("cli/dies", 2);
    await scene.as("alice", "PATCH", `/api/v1/recovery/candidates/${candidate.candidate_id}`, {
      selected_action: "retry_exponential",
    });
    const told = await words(`execute ${candidate.candidate_id} --yes ${QUICK} --stop-at 1 --wait`);
    expect([told.code, told.stdout]).toEqual([1, expect.stringContaining("2 failed")]);
    expect(told.stdout).not.toContain("\r");
    expect(told.stdout).toMatch(/what failed: makegood redrive items [0-9a-f-]{36} --state failed/);
  });
});

describe("R9: execute --wait", () => {
  it("returns for what delivers nothing, and says what was done", async () => {
    for (const [action, said] of [
      ["notify_ops", /is succeeded: operators were told; 3 messages of group \d+ still wait/],
      ["manual_intervention", /is succeeded: group \d+ is held for operators/],
      ["skip_task", /is done: 3 resolved\n/],
    ] as const) {
      const { candidate } = await scene.deadGroup(`cli/${action.replaceAll("_", "-")}`, 3);
      const id = String(candidate.candidate_id);
      await scene.as("alice", "PATCH", `/api/v1/recovery/candidates/${id}`, { selected_action: action });
      await words(`approve ${id}`);
      const told = await words(`execute ${id} --yes --wait`);
      expect([action, told.code, told.stderr]).toEqual([action, 0, ""]);
      expect(told.stdout).toMatch(said);
      expect(told.stdout).not.toContain("healed");
    }
  });
});

describe("redriving", () => {
  it("R8: says what is left alone, ends in bulk, and opens it again", async () => {
    const { group } = await scene.deadGroup("cli/bulk", 3);
    const start = ["redrive", "start", "--groups", String(group.group_id), "--since", "2020-01-01", "--reason", "tests"];
    const done = await run([...start, "--mode", "discard", "--yes", "--wait"]);
    expect([done.code, done.stdout]).toEqual([0, expect.stringMatching(/redrive [0-9a-f-]{36} is done: 3 discarded\n/)]);
    const [, id = ""] = /redrive ([0-9a-f-]{36}) is done/.exec(done.stdout) ?? [];
    const undo = await run([
      "redrive",
      "start",
      "--mode",
      "reopen",
      "--redrive",
      id,
      "--reason",
      "they count",
      "--yes",
      "--wait",
    ]);
    expect([undo.code, undo.stdout]).toEqual([0, expect.stringContaining("3 reopened")]);
    expect(await run([...start, "--mode", "reopen", "--yes"])).toMatchObject({ code: 2 });
    expect(await run([...start.slice(0, 5), "yesterday", "--reason", "x"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("must be an instant such as"),
    });
  });

  it("R7: one that stops by itself says why and what to do, and not that nobody carries it out", async () => {
    const { group } = await scene.deadGroup("cli/stops", 4);
    const start = ["redrive", "start", "--group", String(group.group_id), "--reason", "perhaps", "--canary", "2"];
    const told = await run([...start, "--yes", "--wait"]);
    expect([told.code, told.stderr]).toEqual([1, ""]);
    expect(told.stdout).toMatch(/redrive [0-9a-f-]{36} is stopped: 0 of 4 messages healed, 2 failed, 0 skipped \(.+\)\n/);
    expect(told.stdout).toContain("try those again: makegood redrive resume");
  });

  it("freezes the list, asks, and cancels when the answer is no", async () => {
    const { group } = await scene.deadGroup("cli/drive", 4);
    const start = ["redrive", "start", "--group", String(group.group_id), "--reason", "mended", ...QUICK.split(" ")];
    expect(await run(start)).toMatchObject({ code: 2, stderr: expect.stringContaining("--dry-run") });
    const no = await run(start, { answers: ["no"] });
    expect([no.code, no.asked]).toEqual([2, ["Put 4 messages back? [y/N] "]]);
    fits(no.stdout);
    const [cancelled] = (JSON.parse((await words("redrive list --json --limit 1")).stdout) as { data: { status: string }[] })
      .data;
    expect(cancelled).toMatchObject({ status: "cancelled" });
    scene.receiver.status = 200;
    const yes = await run([...start, "--wait"], { answers: ["y"] });
    expect([yes.code, yes.stdout]).toEqual([0, expect.stringContaining("4 of 4 messages healed")]);
    expect(await run([...start, "--yes"])).toMatchObject({ code: 4, stderr: expect.stringContaining("nothing_selected") });
  });

  it("dry run, status, items, resume and --watch", async () => {
    const { group } = await scene.deadGroup("cli/dry", 2);
    const start = [
      "redrive",
      "start",
      "--group",
      String(group.group_id),
      "--reason",
      "x",
      "--key",
      "cli-dry",
      "--dry-run",
      "--json",
    ];
    const { redrive_id: id } = JSON.parse((await run(start)).stdout) as { redrive_id: string };
    expect((JSON.parse((await run(start)).stdout) as { redrive_id: string }).redrive_id).toBe(id);
    const status = await words(`redrive status ${id}`, { width: 100 });
    expect(status.stdout).toMatch(/messages +2\n[\s\S]*\[\.{24}\] {3}0% planned: 0 of 2 healed, 2 waiting/);
    fits(status.stdout);
    expect((await words(`redrive items ${id} --state waiting`)).stdout.split("\n")).toHaveLength(4);
    scene.receiver.status = 200;
    expect((await words(`redrive resume ${id}`)).stdout).toBe(`redrive ${id} is running\n`);
    expect(await words(`redrive status ${id} --watch`)).toMatchObject({ code: 0, stdout: expect.stringContaining("is done") });
    expect(await words(`redrive cancel ${id}`)).toMatchObject({ code: 4 });
    expect((await words("redrive status")).stdout).toContain(id);
  });

  it("edits one dead letter", async () => {
    const { ids } = await scene.deadGroup("cli/edit", 1);
    scene.receiver.status = 200;
    const bad = await run(["messages", "edit", String(ids[0]), "--payload", '1,"reason":"x"', "--reason", "y"]);
    expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining("not valid JSON")]);
    const told = await run(["messages", "edit", String(ids[0]), "--payload", '{"n":2}', "--reason", "a typo"]);
    expect([told.code, told.stdout]).toEqual([0, expect.stringMatching(new RegExp(`^${ids[0]} goes on as [0-9a-f-]{36}\n$`))]);
  });
});

describe("rules and actions", () => {
  it("a rule is shown, edited, set, and refused with every mistake", async () => {
    const rule = JSON.parse((await words("rules show auth_notify")).stdout) as Record<string, unknown>;
    await writeFile(join(cwd, "rule.json"), JSON.stringify({ ...rule, score: 0.65 }));
    const file = join(cwd, "rule.json");
    expect((await run(["rules", "set", "auth_notify", "--file", file])).stdout).toMatch(
      /^rule auth_notify is version \d+ now\n$/,
    );
    expect(await run(["rules", "set", "auth_notify", "--file", file])).toMatchObject({ code: 4 });
    expect((await words("rules history auth_notify")).stdout).toMatch(/alice +notify_ops 65%, priority 70/);
    const wrong = await words("rules set mine", { stdin: '{"name":"x","priority":-1,"condition":{},"action":"no","score":2}' });
    expect([
      wrong.code,
      wrong.stderr.split("\n").filter((line) => /^ {2}(priority|condition|action|score)/.test(line)).length,
    ]).toEqual([2, 4]);
    expect(await words("rules set mine", { stdin: "{" })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("not valid JSON"),
    });
    expect((await words("rules delete auth_notify --yes")).stdout).toBe("rule auth_notify is not asked any more\n");
    const { version } = JSON.parse((await words("actions show notify_ops --json")).stdout) as { version: number };
    const set = await words("actions set notify_ops", { stdin: JSON.stringify({ approval: "one", version }) });
    expect([set.code, set.stdout]).toEqual([0, expect.stringMatching(/^notify_ops is version \d+ now\n$/)]);
  });
});

describe("causes", () => {
  it("are listed, and a text is tested", async () => {
    expect((await words("causes")).stdout).toMatch(/deadlock +transient_db +97%/);
    const told = await run(["causes", "test", "--error-code", "http_500", "--message", "deadlock detected"]);
    expect(told.stdout).toMatch(/transient_db \(97%\)[\s\S]*deadlock/);
  });
});

describe("wrong arguments and unknown ids", () => {
  it.each<[string, number, RegExp]>([
    ["groups show 999999", 3, /group_not_found/],
    ["groups show ../topics", 2, /id of a group is a number/],
    ["candidates show 999999", 3, /candidate_not_found/],
    ["approve 999999", 3, /candidate_not_found/],
    ["execute 999999 --yes", 3, /candidate_not_found/],
    ["suggest 999999", 3, /group_not_found/],
    ["redrive status 018f0000-0000-7000-8000-000000000000", 3, /redrive_not_found/],
    ["redrive pause nope", 3, /redrive_not_found/],
    ["rules show nope", 3, /rule_not_found/],
    ["causes show nope", 3, /cause_not_found/],
    ["actions show nope", 3, /action_not_found/],
    ["candidates list --decision perhaps", 2, /Allowed choices/],
    ["redrive start --reason x --yes", 2, /select/],
    ["redrive start --topic a/b --yes", 2, /--reason/],
    ["redrive start --group 1 --reason x --yes --rate 0", 2, /--rate <n>.*must be a number/],
    ["execute 1 --canary few", 2, /whole number/],
    ["groups list --limit 0", 2, /limit/],
    ["groups nonsense", 2, /nonsense|too many/],
  ])("%s exits %i and says why", async (command, code, why) => {
    const told = await words(command);
    expect([told.code, told.stderr]).toEqual([code, expect.stringMatching(why)]);
  });

  it("every command has a help text, and the ones that touch messages an example", async () => {
    for (const command of [
      "execute",
      "redrive start",
      "approve",
      "suggest",
      "evaluate",
      "groups merge",
      "groups split",
      "rules set",
    ]) {
      expect((await words(`${command} --help`)).stdout).toContain("Example:");
    }
  });
});

describe("on the store itself", () => {
  it("opens it for the command, under the caller's own name", async () => {
    const schema = freshSchema();
    const local = (text: string, stdin = "") =>
      terminal(text.split(" "), { env: { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema }, cwd, stdin });
    try {
      expect(await local("groups list --json")).toMatchObject({ code: 1, stdout: "" });
      const set = await local(
        "rules set mine",
        '{"name":"x","priority":1,"condition":{"occurrences":2},"action":"notify_ops","score":0.5}',
      );
      expect([set.code, set.stderr]).toEqual([0, ""]);
      expect((await local("groups list --json")).stdout).toBe('{"data":[],"next_cursor":null}\n');
      expect((await local("rules history mine")).stdout).toMatch(/cli\S* /);
      const off = await terminal(["groups"], {
        env: { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema, MAKEGOOD_RECOVERY: "off" },
        cwd,
      });
      expect([off.code, off.stderr]).toEqual([1, expect.stringContaining("MAKEGOOD_RECOVERY")]);
    } finally {
      await dropSchema(schema);
    }
  });

  it("two people are two tokens also from the command line", async () => {
    const { candidate } = await scene.deadGroup("cli/two", 1);
    const id = String(candidate.candidate_id);
    const { version } = JSON.parse((await words("actions show skip_task --json")).stdout) as { version: number };
    await words("actions set skip_task", { stdin: JSON.stringify({ approval: "two", version }) });
    await scene.as("alice", "PATCH", `/api/v1/recovery/candidates/${id}`, { selected_action: "skip_task" });
    expect((await words(`approve ${id}`)).stdout).toContain("1 approval missing");
    expect(await words(`execute ${id} --yes`)).toMatchObject({ code: 4, stderr: expect.stringContaining("approval_needed") });
    expect((await words(`approve ${id}`, { env: env("bob") })).stdout).toContain("is approved");
    expect((await words(`execute ${id} --yes`)).code).toBe(0);
    await vi.waitFor(async () => expect(await scene.candidate(id)).not.toMatchObject({ execution_status: "pending" }), 10_000);
  });
});
