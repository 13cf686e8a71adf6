/**
 * Merges and splits over time: what a person decided holds when templates become more general, when a process is killed on the way, when
 * it is done again and again; and a decision can be looked up and taken back.
 */
import { describe, expect, it } from "vitest";
import { createIds } from "../../../src/platform/ids.ts";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import { createGroupJoins } from "../../../src/recovery/failures/join-groups.ts";
import type { Group } from "../../../src/recovery/groups/group.ts";
import { mergeDecision } from "../../../src/recovery/groups/merge.ts";
import { groupRuleText, readGroupRule } from "../../../src/recovery/groups/rule-documents.ts";
import type { Records } from "../../../src/recovery/records.ts";
import { ANN, BO, createScene, type Scene, TOPIC } from "./scene.ts";

const SETTINGS = { ids: createIds(), rejectedRestMs: 0 };

const groupOf = async ({ recovery }: Scene, messageId: string | undefined): Promise<number | undefined> =>
  (await recovery.groupOf({ messageId: messageId ?? "" }))?.groupId;

/** Groups of one topic and code with templates of their own; their ids. */
async function groups({ recovery }: Scene, count: number): Promise<number[]> {
  const failures = Array.from({ length: count }, (_, i) => {
    const word = String.fromCharCode(97 + (i % 26)) + String.fromCharCode(97 + Math.floor(i / 26));
    const at = { topic: TOPIC, sink: "x", errorCode: "E", template: `the ${word} thing broke`, topFrame: null, groupRule: null };
    const group = { ...at, fingerprint: `f1.${word}.p`, failureMatchId: `m-${word}` };
    const rest = { requestKey: null, payloadHash: "0".repeat(32), failureMatchId: null, message: null, tenantId: null } as const;
    const text = { skillId: null, errorMessage: group.template, stackTrace: null, failurePayload: null, evaluate: false };
    return { ...rest, ...text, source: "api" as const, group };
  });
  return (await recovery.ingest(failures, SETTINGS)).map(({ groupId }) => groupId);
}

async function fillRules({ recovery, store }: Scene, count: number): Promise<void> {
  const [last, ...more] = Array.from({ length: count }, (_, i) => {
    const rule = { id: `split-${i}`, kind: "split", topic: "t", code: "c", templates: ["a b"], words: [`w${i}`], why: "x" };
    return { kind: "group_rule", id: rule.id, text: JSON.stringify({ rule, target: null, places: [] }), actor: "ann" } as const;
  }).reverse();
  const text = `insert into ${store.home.s}.recovery_document (kind, id, version, text, actor, at)
    select kind, id, 1, text, actor, statement_timestamp() from json_to_recordset($1::json) x(kind text, id text, text text, actor text)`;
  await store.home.write("fill rules")(text, [JSON.stringify(more)]);
  // The last one as everybody writes it, so that all hear of them.
  if (last) await recovery.documents.put({ ...last, version: 0 });
}

describe("a merge", () => {
  it("into a group whose candidate is closed leaves the open messages with a suggestion", async () => {
    const scene = await createScene();
    const first = await scene.timeout();
    await scene.engine.update(first.candidateId, { ...ANN, selectedAction: "notify_ops" });
    await scene.engine.execute(first.candidateId, ANN);
    await scene.die(["the journal is closed since noon", "the journal is closed since noon"]);
    await scene.work();
    const { data } = await scene.engine.groups({ limit: 10 });
    const other = data.find(({ groupId }) => groupId !== first.groupId)?.groupId ?? 0;
    await scene.engine.merge(first.groupId, [other], "the same", ANN);
    await scene.work();
    const now = (await scene.recovery.candidateOf(first.groupId)) as Candidate;
    expect(now).toMatchObject({ round: 2, decision: "pending", executionStatus: "pending", evaluationStatus: "evaluated" });
  });

  it("into a group whose candidate is closed asks anew also about failures of others, and not when both are closed", async () => {
    const scene = await createScene();
    const { engine, report } = scene;
    const into = await engine.ingest(report({ errorMessage: "the journal is closed" }), ANN);
    await engine.reject(into.candidateId, ANN);
    const closed = await engine.ingest(report({ errorMessage: "no paper in tray" }), ANN);
    await engine.reject(closed.candidateId, ANN);
    await engine.merge(into.groupId, [closed.groupId], "the same", ANN);
    expect(await scene.recovery.candidateOf(into.groupId)).toMatchObject({ round: 1, decision: "rejected" });
    const open = await engine.ingest(report({ errorMessage: "disk quota exceeded somewhere" }), ANN);
    await engine.merge(into.groupId, [open.groupId], "the same", ANN);
    expect(await scene.recovery.candidateOf(into.groupId)).toMatchObject({ round: 2, decision: "pending" });
  });

  it("by the system into a group whose candidate is closed leaves a suggestion too, unless it was just rejected", async () => {
    for (const [end, round] of [
      [{ executionStatus: "skipped" }, 2],
      [{ decision: "rejected" }, 1],
    ] as const) {
      const scene = await createScene();
      const first = await scene.timeout();
      await scene.recovery.write({ candidateId: first.candidateId, patch: end, provenance: [] });
      const [one] = await scene.die(["the journal is closed since noon"]);
      const into = await scene.recovery.group(first.groupId);
      const from = await scene.recovery.groupOf({ messageId: one ?? "" });
      // As if the other's template had become more general.
      const resolve = (_topic: string, _code: string, key: string) =>
        key === from?.fingerprint ? (into?.fingerprint ?? key) : key;
      const fingerprints = { resolve, learned: (_topic: string, _code: string, key: string) => key };
      const settings = { ids: createIds(scene.clock), rejectedRestMs: 1_000 };
      const joins = createGroupJoins({ recovery: scene.recovery, fingerprints, settings, clock: scene.clock });
      expect(await joins.join([{ topic: TOPIC, errorCode: "TIMEOUT" }])).toBe(1);
      expect(await scene.recovery.candidateOf(first.groupId)).toMatchObject({ round });
    }
  });

  it("across codes holds for the future, also when the template becomes more general", async () => {
    const scene = await createScene();
    const text = (name: string) => `could not charge card of user ${name} today`;
    const { groupId: into } = await scene.engine.ingest(
      scene.report({ errorCode: "E_PAY", errorMessage: "the payment desk is closed" }),
      ANN,
    );
    const { groupId: from } = await scene.engine.ingest(scene.report({ errorCode: "E_CARD", errorMessage: text("ann") }), ANN);
    await scene.engine.merge(into, [from], "one cause", ANN);
    for (const name of ["bo", "cy", "dan", "eve", "fay"])
      await scene.engine.ingest(scene.report({ errorCode: "E_CARD", errorMessage: text(name) }), ANN);
    // Ann's failure is of the same template as the others by now, and a person said where it belongs.
    expect((await scene.engine.groups({ limit: 10 })).data).toMatchObject([{ groupId: into, occurrenceCount: 7 }]);
  });

  it("of as many groups as it takes is one rule; one that cannot be merged stops it before anything happens", async () => {
    const scene = await createScene();
    const [into = 0, ...from] = await groups(scene, 101);
    const parts = async (): Promise<number> =>
      (await scene.recovery.groups({ limit: 200, merged: true })).data.filter(({ mergedInto }) => mergedInto === into).length;
    const executionId = "019b76da-0000-7000-8000-0000000000ff";
    const { candidateId } = (await scene.recovery.candidateOf(from[99] ?? 0)) as Candidate;
    const claim = { executionStatus: "executing", executionId, leaseMs: 1_000 } as const;
    await scene.recovery.write({ candidateId, patch: claim, provenance: [] });
    await expect(scene.engine.merge(into, from, "all the same", ANN)).rejects.toMatchObject({ code: "wrong_state" });
    expect(await parts()).toBe(0);
    expect(await scene.engine.groupRules()).toEqual([]);
    await scene.recovery.write({ candidateId, patch: { executionStatus: "failed", leaseMs: null }, provenance: [] });
    expect(await scene.engine.merge(into, from, "all the same", ANN)).toMatchObject({ groupId: into, occurrenceCount: 101 });
    expect(await parts()).toBe(100);
    expect(await scene.engine.groupRules()).toMatchObject([{ kind: "merge", actor: "ann", reason: "all the same", used: true }]);
  });

  it("after another extends its rule, and asked for again does what a killed process left", async () => {
    const scene = await createScene();
    const [a = 0, b = 0, c = 0, d = 0] = await groups(scene, 4);
    await scene.engine.merge(a, [b], "one", ANN);
    const [first] = await scene.engine.groupRules();
    await scene.engine.merge(c, [d], "two", ANN);
    await scene.engine.merge(a, [c], "all of them", BO);
    expect(await scene.engine.groupRules()).toMatchObject([{ id: first?.id, actor: "bo", version: 2, reason: "all of them" }]);
    expect((await scene.engine.groupRules())[0]?.templates).toHaveLength(4);
    expect(await scene.engine.merge(a, [b, c], "again", ANN)).toMatchObject({ groupId: a, occurrenceCount: 4 });
  });

  it("of what was split off elsewhere does not take what stayed along", async () => {
    const scene = await createScene();
    const texts = ["upstream answered 503 after 1 ms", "upstream answered 429 after 2 ms"];
    const [, stayed] = await scene.die(texts, { code: "E_UP" });
    const [elsewhere] = await scene.die(["the gateway is down"], { code: "E_UP" });
    const whole = (await groupOf(scene, stayed)) ?? 0;
    const into = (await groupOf(scene, elsewhere)) ?? 0;
    const { group } = await scene.engine.split(whole, ["503"], "another cause", ANN);
    await scene.engine.merge(into, [group.groupId], "the gateway", ANN);
    const [gone, kept] = await scene.die(["upstream answered 503 after 3 ms", "upstream answered 429 after 4 ms"], {
      code: "E_UP",
    });
    expect([await groupOf(scene, gone), await groupOf(scene, kept)]).toEqual([into, whole]);
  });
});

describe("a split", () => {
  const texts = Array.from({ length: 6 }, (_, i) => `upstream answered ${i % 2 === 0 ? 503 : 429} after ${i} ms`);

  it("shows what those that were split off have in common, not what they had in common before", async () => {
    const scene = await createScene();
    const fruit = ["apple", "pear", "plum", "fig", "lime", "apple", "apple"];
    const [one] = await scene.die(
      fruit.map((word, i) => `the shelf of ${word} is empty since ${i} days`),
      { code: "E_SHELF" },
    );
    const whole = await scene.engine.group((await groupOf(scene, one)) ?? 0);
    expect(whole.group.template).toBe("the shelf of <*> is empty since <*>");
    const { group, moved } = await scene.engine.split(whole.group.groupId, ["apple"], "apples are ours", ANN);
    expect([moved, group.template]).toEqual([3, "the shelf of apple is empty since <*>"]);
    // The rule goes on by the words.
    const [later] = await scene.die(["the shelf of apple is empty since 90 days"], { code: "E_SHELF" });
    expect(await groupOf(scene, later)).toBe(group.groupId);
  });

  it("makes a group that is as old as what moved, not as the split", async () => {
    const scene = await createScene();
    const [, one] = await scene.die(texts, { code: "E_UP" });
    const whole = (await groupOf(scene, one)) ?? 0;
    const { lastAt } = (await scene.engine.group(whole)).group;
    await scene.clock.advance(60_000);
    const { groupId } = (await scene.engine.split(whole, ["503"], "another cause", ANN)).group;
    const { group } = await scene.engine.group(groupId);
    expect([group.lastAt <= lastAt, group.firstAt <= lastAt]).toEqual([true, true]);
  });

  it("asked for twice is one rule and one group", async () => {
    const scene = await createScene();
    const [, one] = await scene.die(texts, { code: "E_UP" });
    const whole = (await groupOf(scene, one)) ?? 0;
    const first = await scene.engine.split(whole, ["503"], "another cause", ANN);
    const again = await scene.engine.split(whole, [" 503", "503"], "another cause", BO);
    expect([first.moved, again.moved, again.group.groupId]).toEqual([3, 0, first.group.groupId]);
    expect(await scene.engine.groupRules()).toHaveLength(1);
  });

  it("whose process was killed before it moved anything is finished by asking again", async () => {
    const scene = await createScene();
    const [, one] = await scene.die(texts, { code: "E_UP" });
    const whole = (await groupOf(scene, one)) ?? 0;
    const { moveOccurrences } = scene.recovery;
    const broken = scene.recovery as { moveOccurrences: Records["moveOccurrences"] };
    broken.moveOccurrences = async () => {
      throw new Error("killed");
    };
    await expect(scene.engine.split(whole, ["503"], "another cause", ANN)).rejects.toThrow("killed");
    broken.moveOccurrences = moveOccurrences;
    const { group, moved } = await scene.engine.split(whole, ["503"], "another cause", ANN);
    expect([moved, group.occurrenceCount, (await scene.recovery.group(whole))?.occurrenceCount]).toEqual([3, 3, 3]);
    expect(await scene.recovery.candidateOf(group.groupId)).toMatchObject({ round: 1 });
    expect((await scene.engine.groups({ limit: 10 })).data).toHaveLength(2);
  });

  it("whose process was killed, and whose group was decided about meanwhile, asks anew about what comes to it", async () => {
    const scene = await createScene();
    const [, one] = await scene.die(texts, { code: "E_UP" });
    const whole = (await groupOf(scene, one)) ?? 0;
    const { moveOccurrences } = scene.recovery;
    const broken = scene.recovery as { moveOccurrences: Records["moveOccurrences"] };
    broken.moveOccurrences = () => Promise.reject(new Error("killed"));
    await expect(scene.engine.split(whole, ["503"], "another cause", ANN)).rejects.toThrow("killed");
    broken.moveOccurrences = moveOccurrences;
    const [next] = await scene.die(["upstream answered 503 after 9 ms"], { code: "E_UP" });
    const part = (await groupOf(scene, next)) ?? 0;
    const first = await scene.recovery.candidateOf(part);
    await scene.engine.reject(first?.candidateId ?? 0, ANN);
    expect(await scene.engine.split(whole, ["503"], "another cause", ANN)).toMatchObject({ moved: 3, group: { groupId: part } });
    expect(await scene.recovery.candidateOf(part)).toMatchObject({ round: 2, decision: "pending" });
    // With nothing to move, nobody is asked again.
    await scene.engine.reject((await scene.recovery.candidateOf(part))?.candidateId ?? 0, ANN);
    expect((await scene.engine.split(whole, ["503"], "another cause", ANN)).moved).toBe(0);
    expect(await scene.recovery.candidateOf(part)).toMatchObject({ round: 2, decision: "rejected" });
  });

  it("merged back can be made again, and what was split off can be split further", async () => {
    const scene = await createScene();
    const [, one] = await scene.die(texts, { code: "E_UP" });
    const whole = (await groupOf(scene, one)) ?? 0;
    const first = await scene.engine.split(whole, ["503"], "another cause", ANN);
    await scene.engine.merge(whole, [first.group.groupId], "not after all", ANN);
    const second = await scene.engine.split(whole, ["503"], "after all", ANN);
    expect(second.moved).toBe(3);
    const [next, far] = await scene.die(["upstream answered 503 after 9 ms", "upstream answered 503 after 77 ms"], {
      code: "E_UP",
    });
    expect(await groupOf(scene, next)).toBe(second.group.groupId);
    const third = await scene.engine.split(second.group.groupId, ["77"], "slow ones", ANN);
    expect(third.moved).toBe(1);
    const [later, other] = await scene.die(["upstream answered 503 after 77 ms", "upstream answered 429 after 77 ms"], {
      code: "E_UP",
    });
    expect(await groupOf(scene, other)).toBe(whole);
    expect([await groupOf(scene, far), await groupOf(scene, later)]).toEqual([third.group.groupId, third.group.groupId]);
  });
});

describe("a split by more than a word", () => {
  it.each([
    ["read only", "the replica", "a phrase"],
    ["db-eu-west", "the west", "a name with hyphens"],
    ["10.0.0.7:5432", "one machine", "an address"],
  ])("R10: takes %s (%s)", async (phrase) => {
    const scene = await createScene();
    const text = (host: string, why: string) => `write to ${host} refused for tenant ann: node is ${why}`;
    const [first, second, third] = await scene.die(
      [text("10.0.0.7:5432", "read  only"), text("10.0.0.70:5432", "db-eu-west"), text("10.0.0.7:54321", "db-eu-west-2")],
      { code: "E_WRITE" },
    );
    const [first0, ...rest] = [
      ...new Set([await groupOf(scene, first), await groupOf(scene, second), await groupOf(scene, third)]),
    ];
    if (rest.length > 0) await scene.engine.merge(first0 ?? 0, rest.map(Number), "one database", ANN);
    const { moved } = await scene.engine.split(first0 ?? 0, [phrase], "another cause", ANN);
    expect(moved).toBe(phrase.startsWith("db") ? 2 : 1);
  });
});

describe("what the machine merged", () => {
  const text = (name: string) => `lease of ${name} expired and was given back to the pool`;

  it("is shown as such, and a split takes it back for good", async () => {
    const scene = await createScene();
    const [odd, one] = await scene.die(["printer", "10.0.0.1", "10.0.0.2"].map(text), { code: "E_LEASE" });
    const whole = (await groupOf(scene, one)) ?? 0;
    expect(await groupOf(scene, odd)).toBe(whole);
    const { why } = await scene.engine.group(whole);
    expect(why.join(" ")).toContain(`no person did: "${text("printer")}" became "${text("<*>")}"`);
    const { group, moved } = await scene.engine.split(whole, ["printer"], "not a lease of ours", ANN);
    expect([moved, group.template]).toEqual([1, text("printer")]);
    const later = await scene.die(["10.0.0.3", "printer", "scanner"].map(text), { code: "E_LEASE" });
    const where = await Promise.all(later.map((id) => groupOf(scene, id)));
    expect(where).toEqual([whole, group.groupId, whole]);
  });
});

describe("group rules", () => {
  it("are kept under the names they began with: what was decided before is read, and written so again", () => {
    const target = {
      fingerprint: "f1.a.p",
      matchId: "m",
      topic: "t/x",
      sink: "http",
      code: "E",
      template: "a b",
      frame: null,
      rule: "r",
    };
    const rule = { id: "r", kind: "merge", topic: "t/x", code: "E", templates: ["a b", "a c"], why: "the same" };
    const text = JSON.stringify({ rule, target, places: ["p"] });
    const kept = readGroupRule(text);
    expect(kept.rule).toMatchObject({ errorCode: "E", reason: "the same" });
    expect(kept.target).toMatchObject({ failureMatchId: "m", errorCode: "E", topFrame: null, groupRule: "r" });
    expect(groupRuleText(kept)).toBe(text);
  });

  it("a merge extends the rule of its own topic and code, and no other that has the same templates", async () => {
    const scene = await createScene();
    await groups(scene, 1);
    const [into] = (await scene.engine.groups({ limit: 1 })).data;
    const decided = (rule: { topic: string; errorCode: string }) => {
      const templates = ["the aa thing broke", "the ba thing broke"];
      const kept = {
        rule: { id: "old", kind: "merge" as const, templates, reason: "x", ...rule },
        target: null,
        places: [],
        version: 3,
      };
      const book = { rules: [kept.rule], byId: new Map([["old", kept]]) };
      const decision = mergeDecision(book, into as Group, [], templates, "the same", () => "new");
      return [decision?.id, decision?.document.version];
    };
    expect(decided({ topic: TOPIC, errorCode: "E" })).toEqual(["old", 3]);
    expect(decided({ topic: TOPIC, errorCode: "F" })).toEqual(["merge-new", 0]);
    expect(decided({ topic: "shop/refund", errorCode: "E" })).toEqual(["merge-new", 0]);
  });

  it("past their limit end neither ingest nor anything else: the next one is refused, and there is a way out", async () => {
    const scene = await createScene();
    const [into = 0, from = 0] = await groups(scene, 2);
    await fillRules(scene, 1_001);
    expect(await scene.engine.ingest(scene.report(), ANN)).toMatchObject({ status: "accepted" });
    expect(scene.events).toContainEqual(expect.objectContaining({ what: "recovery_group_rules_over_limit" }));
    const refused = { code: "wrong_state", message: expect.stringContaining("1000 group rules") };
    await expect(scene.engine.merge(into, [from], "x", ANN)).rejects.toMatchObject(refused);
    expect((await scene.recovery.group(from))?.mergedInto).toBe(null);
    const { groupId } = await scene.engine.ingest(scene.report({ errorMessage: "the call timed out for good" }), ANN);
    await expect(scene.engine.split(groupId, ["good"], "x", ANN)).rejects.toMatchObject(refused);
    const unused = (await scene.engine.groupRules()).filter(({ used }) => !used);
    expect(unused).toHaveLength(1);
    for (const id of ["split-1", "split-2"]) await scene.engine.deleteGroupRule(id, null, ANN);
    expect(await scene.engine.merge(into, [from], "x", ANN)).toMatchObject({ occurrenceCount: 2 });
  });

  it("that are deleted part nothing: groups that were merged stay so until they are split", async () => {
    const scene = await createScene();
    const texts = ["the ledger refused to close", "the journal is locked"];
    const [one, other] = await scene.die(texts, { code: "E_BOOK" });
    const [into = 0, from = 0] = [await groupOf(scene, one), await groupOf(scene, other)];
    await scene.engine.merge(into, [from], "one book", ANN);
    for (const { id } of await scene.engine.groupRules()) await scene.engine.deleteGroupRule(id, null, ANN);
    const [next] = await scene.die(texts.slice(1), { code: "E_BOOK" });
    expect(await groupOf(scene, next)).toBe(into);
    const { group, moved } = await scene.engine.split(into, ["journal"], "two books", ANN);
    expect([moved, await groupOf(scene, next)]).toEqual([2, group.groupId]);
  });

  it("are deleted by version, on record, and the next failure is grouped as if nobody had decided", async () => {
    const scene = await createScene();
    const [one] = await scene.die(["upstream answered 503 after 1 ms", "upstream answered 429 after 2 ms"], { code: "E_UP" });
    const whole = (await groupOf(scene, one)) ?? 0;
    const { group } = await scene.engine.split(whole, ["503"], "another cause", ANN);
    const [rule] = await scene.engine.groupRules();
    expect(rule).toMatchObject({ kind: "split", words: ["503"], reason: "another cause", actor: "ann", version: 1 });
    const id = rule?.id ?? "";
    await expect(scene.engine.deleteGroupRule("nope", null, ANN)).rejects.toMatchObject({ code: "rule_not_found" });
    await expect(scene.engine.deleteGroupRule(id, 7, ANN)).rejects.toMatchObject({ code: "version_conflict" });
    await scene.engine.deleteGroupRule(id, 1, BO);
    expect(await scene.engine.groupRules()).toEqual([]);
    const { data } = await scene.engine.provenance({}, { limit: 1 });
    expect(data).toMatchObject([{ eventType: "group_rule_deleted", actor: "bo", ruleId: id, reason: "another cause" }]);
    const [next] = await scene.die(["upstream answered 503 after 3 ms"], { code: "E_UP" });
    expect(await groupOf(scene, next)).toBe(whole);
    expect((await scene.recovery.group(group.groupId))?.occurrenceCount).toBe(1);
  });
});
