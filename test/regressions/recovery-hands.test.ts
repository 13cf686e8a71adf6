/**
 * What a person had no command for, and what was left without a suggestion (R11), through the command line on a server with PostgreSQL;
 * and what other rules would have suggested.
 */
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { terminal } from "../cli/terminal.ts";
import { dataOf, type Json, type RecoveryServer, startRecoveryServer, TOKENS } from "../server/recovery-support.ts";
import { dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";

const schema = freshSchema();
let scene: RecoveryServer;
beforeAll(async () => {
  scene = await startRecoveryServer({}, { store: await openStore({ schema }) });
  const rule = { name: "tell", priority: 998, condition: { topic: ["hands/*"] }, action: "notify_ops", score: 0.7 };
  expect((await scene.as("alice", "PUT", `${BASE}/rules/tell`, rule)).status).toBe(201);
});
afterAll(async () => {
  await scene.close();
  await dropSchema(schema);
});

const BASE = "/api/v1/recovery";
const run = (...args: string[]) =>
  terminal(args, { env: { MAKEGOOD_URL: scene.server.url, MAKEGOOD_TOKEN: TOKENS.alice }, width: 100 });
const words = (text: string) => run(...text.split(" "));
const asJson = async (text: string) => JSON.parse((await words(`${text} --json`)).stdout) as Json;
const LONG = { timeout: 15_000, interval: 50 };

async function chosen(topic: string, action: string, count = 2) {
  const { group, candidate } = await scene.deadGroup(topic, count);
  const id = String(candidate.candidate_id);
  const told = await run("candidates", "choose", id, "--action", action, "--reason", "a person knows better");
  expect([told.code, told.stdout, told.stderr]).toEqual([0, `candidate ${id} is to do ${action} now\n`, ""]);
  return { id, group: String(group.group_id) };
}

/** The next round of a group, evaluated. */
const nextRound = (group: string, round: number) =>
  vi.waitFor(async () => {
    const [one] = dataOf(await scene.as("alice", "GET", `${BASE}/candidates?group_id=${group}`));
    expect(one).toMatchObject({ round, evaluation_status: "evaluated", decision: "pending" });
    expect(one?.selected_action).toBe("notify_ops");
    return one as Json;
  }, LONG);

describe("R11: another action", () => {
  it("is chosen with a reason, and it is on record who did", async () => {
    const { id } = await chosen("hands/choose", "manual_intervention");
    expect(await scene.candidate(id)).toMatchObject({
      selected_action: "manual_intervention",
      evaluation: { selected_by: "alice" },
    });
    expect(await run("candidates", "choose", id)).toMatchObject({ code: 2, stderr: expect.stringContaining("--action") });
    const wrong = await words(`candidates choose ${id} --action nonsense`);
    expect([wrong.code, wrong.stderr]).toEqual([3, expect.stringContaining("nonsense")]);
    const history = await words(`candidates history ${id}`);
    expect(history.stdout).toMatch(/^AT +ACTOR +EVENT +ACTION +REASON\n/);
    expect(history.stdout).toMatch(/alice +action_selected +manual_intervention +a person knows better/);
  });
});

describe("R11: a hold", () => {
  it("is shown with its note, released once, and leaves a suggestion", async () => {
    const { id, group } = await chosen("hands/hold", "manual_intervention");
    expect((await words(`execute ${id} --yes`)).code).toBe(0);
    const held = (await scene.as("alice", "GET", `${BASE}/groups/${group}`)).body;
    expect(held).toMatchObject({ held_by: "operators", candidate: { note: expect.stringContaining("need a person") } });
    expect((await words(`candidates show ${id}`)).stdout).toMatch(/\nnote\n {2}\d failures of hands\/hold/);
    expect((await words("candidates list --wide")).stdout).toMatch(/^CANDIDATE .* OWNER +NOTE/);
    const told = await run("groups", "release", group, "--reason", "looked after");
    expect([told.code, told.stdout]).toEqual([0, `group ${group} is held by nobody now\n`]);
    await nextRound(group, 2);
    const again = await words(`groups release ${group}`);
    expect([again.code, again.stderr]).toEqual([4, expect.stringContaining(`Group ${group} is held by nobody`)]);
    expect((await words("groups release 999999")).code).toBe(3);
    expect((await words(`groups history ${group}`)).stdout).toMatch(/alice +released +looked after/);
  });

  it("ends with a rollback too", async () => {
    const { id, group } = await chosen("hands/undo", "manual_intervention");
    await words(`execute ${id} --yes`);
    expect(await words(`candidates rollback ${id}`)).toMatchObject({ code: 0, stdout: `candidate ${id} is rolled_back now\n` });
    expect((await scene.as("alice", "GET", `${BASE}/groups/${group}`)).body.held_by).toBeNull();
    await nextRound(group, 2);
  });
});

describe("R11: rolling back", () => {
  it("closes the breaker that was opened, and is refused where nothing undoes the action", async () => {
    const { id } = await chosen("hands/breaker", "circuit_breaker");
    await words(`approve ${id}`);
    expect((await words(`execute ${id} --yes`)).code).toBe(0);
    const breaker = async () => (await scene.as("alice", "GET", "/api/v1/topics/hands/breaker")).body.breaker as Json;
    expect(await breaker()).toMatchObject({ state: "open" });
    const early = await words(`candidates rollback ${id}`);
    expect([early.code, early.stderr]).toEqual([4, expect.stringContaining("cancel its redrive")]);
    await words(`redrive cancel ${(await scene.candidate(id)).redrive_id}`);
    await vi.waitFor(async () => expect((await scene.candidate(id)).execution_status).not.toBe("executing"), LONG);
    expect(await words(`candidates rollback ${id}`)).toMatchObject({ code: 0 });
    expect(await breaker()).toMatchObject({ state: "closed" });
  });

  it("says that nothing undoes a notice", async () => {
    const { id } = await chosen("hands/notice", "notify_ops");
    await words(`execute ${id} --yes`);
    const told = await words(`candidates rollback ${id}`);
    expect([told.code, told.stderr]).toEqual([4, expect.stringContaining("Nothing undoes notify_ops")]);
  });
});

describe("R11: an execution whose outcome is unknown", () => {
  it("is ended by a person, and what is left open gets a suggestion", async () => {
    const { id, group } = await chosen("hands/unknown", "retry_exponential");
    const step = `update "${schema}".recovery_candidate set version = version + 1, execution_id = 'x', executed_at = now(), execution_status`;
    await withClient(async (client) => {
      for (const status of ["executing", "unknown"]) await client.query(`${step} = '${status}' where id = $1`, [id]);
    });
    expect(await words(`candidates settle ${id}`)).toMatchObject({ code: 2, stderr: expect.stringContaining("--as succeeded") });
    const told = await run("candidates", "settle", id, "--as", "failed", "--reason", "nothing was sent");
    expect([told.code, told.stdout, told.stderr]).toEqual([0, `candidate ${id} is failed now\n`, ""]);
    await nextRound(group, 2);
    expect(await words(`candidates settle ${id} --as failed`)).toMatchObject({ code: 4 });
  });
});

describe("R11: a cancelled execution", () => {
  it("leaves no open letters without a suggestion, and the next one does not run by itself", async () => {
    const { id, group } = await chosen("hands/cancel", "retry_exponential", 6);
    const slow = "--canary 0 --rate 0.1 --ramp-from 0.1 --delay 600000";
    expect((await words(`execute ${id} --yes ${slow}`)).code).toBe(0);
    const { redrive_id } = await scene.candidate(id);
    expect((await words(`redrive cancel ${redrive_id} --reason wrong`)).code).toBe(0);
    const next = await nextRound(group, 2);
    expect(next.candidate_id).not.toBe(Number(id));
    expect((await scene.as("alice", "GET", `${BASE}/groups/${group}`)).body.open_messages).toBe(6);
    expect((await words(`redrive history ${redrive_id}`)).stdout).toMatch(/alice +redrive_cancelled/);
    const lines = await words(`groups history ${group}`);
    expect(lines.stdout).toMatch(/system +reopened +its execution was cancelled/);
  });
});

describe("R11: numbers and lists", () => {
  it("stats are readable, and lists go by size and by time", async () => {
    const [large, small] = [await scene.deadGroup("hands/large", 9), await scene.deadGroup("hands/small", 1)];
    const stats = await words("recovery stats");
    expect([stats.code, stats.stdout]).toEqual([0, expect.stringMatching(/^groups +\d+\nopen_groups +\d+/)]);
    expect(await asJson("recovery stats")).toMatchObject({ groups: expect.any(Number) });
    const ids = async (text: string) => ((await asJson(text)).data as Json[]).map(({ group_id }) => group_id);
    const wanted = (list: readonly unknown[]) => list.filter((id) => id === large.group.group_id || id === small.group.group_id);
    const [a, b] = [large.group.group_id, small.group.group_id];
    for (const list of ["groups list", "candidates list"]) {
      expect(wanted(await ids(`${list} --order size`))).toEqual([a, b]);
      expect(wanted(await ids(`${list} --order recent`))).toEqual([b, a]);
      expect(wanted(await ids(`${list} --since 1h`))).toHaveLength(2);
      expect(await ids(`${list} --until 2020-01-01T00:00:00Z`)).toEqual([]);
      expect(await ids(`${list} --since 2090-01-01`)).toEqual([]);
      expect(await words(`${list} --since yesterday`)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("how long ago"),
      });
    }
    const first = await asJson("candidates list --order size --limit 1");
    const second = await asJson(`candidates list --order size --limit 1 --cursor ${first.next_cursor}`);
    expect((second.data as Json[])[0]?.group_id).not.toBe((first.data as Json[])[0]?.group_id);
  });
});

describe("what other rules would have suggested", () => {
  it("names the groups, both actions and how that ended before, and writes nothing", async () => {
    const { group, candidate } = await scene.deadGroup("hands/whatif", 3);
    const rule = {
      ...{ id: "tried", name: "tried", priority: 999, score: 0.9, action: "skip_task" },
      condition: { topic: ["hands/whatif"] },
    };
    const file = join(tmpdir(), `makegood-whatif-${process.pid}.json`);
    await writeFile(file, JSON.stringify(rule));
    const told = await run("whatif", "--rules", file, "--days", "2");
    expect([told.code, told.stderr]).toEqual([0, ""]);
    expect(told.stdout).toMatch(
      /^1 of \d+ groups of the last 2 days would get another suggestion, with 3 open messages; nothing was changed\n/,
    );
    expect(told.stdout).toMatch(new RegExp(`\n${group.group_id} +3 +notify_ops 70% +skip_task 90% +not known +`));
    await writeFile(file, JSON.stringify([rule]));
    const json = await asJson(`whatif --rules ${file}`);
    expect(json).toMatchObject({ days: 7, changed: 1, cut_off: false, next_cursor: null });
    expect(json.data).toMatchObject([
      { group_id: group.group_id, open_messages: 3, after: { action: "skip_task", ended: null } },
    ]);
    const after = await scene.candidate(candidate.candidate_id);
    expect([after.version, after.selected_action]).toEqual([candidate.version, candidate.selected_action]);
    expect((await scene.as("alice", "GET", `${BASE}/rules/tried`)).status).toBe(404);
  });

  it("says what is wrong with a rule, and where it was cut off", async () => {
    await scene.deadGroup("hands/whatif-more", 1);
    const bad = await scene.as("alice", "POST", `${BASE}/whatif`, { rules: [{ id: "x" }] });
    expect([bad.status, bad.body.code]).toEqual([400, "invalid_rule"]);
    expect((bad.body.errors as Json[]).map(({ field }) => field)).toContain("rules.0.name");
    const rule = { id: "x", name: "x", priority: 999, score: 0.9, action: "skip_task", condition: { topic: ["hands/*"] } };
    const cut = await scene.as("alice", "POST", `${BASE}/whatif`, { rules: [rule], limit: 1 });
    expect(cut.body).toMatchObject({ groups: 1, cut_off: true, next_cursor: expect.any(String) });
    const rest = await scene.as("alice", "POST", `${BASE}/whatif`, { rules: [rule], cursor: cut.body.next_cursor });
    expect(rest.body).toMatchObject({ cut_off: false });
    expect((rest.body.data as Json[]).map(({ group_id }) => group_id)).not.toContain((cut.body.data as Json[])[0]?.group_id);
  });
});
