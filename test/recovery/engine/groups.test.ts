/**
 * Groups as people change them: merged, split, explained. A decision holds for what is there and for what comes, and no occurrence is lost or
 * counted twice.
 */
import { describe, expect, it } from "vitest";
import { ANN, createScene, type Scene, TOPIC, times } from "./scene.ts";

const total = async ({ engine }: Scene): Promise<number> =>
  (await engine.groups({ limit: 100 })).data.reduce((sum, { occurrenceCount }) => sum + occurrenceCount, 0);

const groupOf = async ({ recovery }: Scene, messageId: string | undefined): Promise<number | undefined> =>
  (await recovery.groupOf({ messageId: messageId ?? "" }))?.groupId;

/** Two texts that the templates keep apart. */
async function two(scene: Scene): Promise<[number, number]> {
  const [one, other] = await scene.die(["the ledger refused to close", "the journal is locked"], { code: "E_BOOK" });
  return [(await groupOf(scene, one)) ?? 0, (await groupOf(scene, other)) ?? 0];
}

describe("merge", () => {
  it("adds up, ends the other's candidate, and sends what comes next to the same group", async () => {
    const scene = await createScene();
    const [into, from] = await two(scene);
    expect(into).not.toBe(from);
    const merged = await scene.engine.merge(into, [from], "one outage", ANN);
    expect(merged).toMatchObject({ groupId: into, occurrenceCount: 2, openMessages: 2 });
    const ids = await scene.die(["the journal is locked", "the ledger refused to close", "the journal is locked"], {
      code: "E_BOOK",
    });
    for (const id of ids) expect(await groupOf(scene, id)).toBe(into);
    const { data } = await scene.engine.groups({ limit: 10 });
    expect(data).toMatchObject([{ groupId: into, occurrenceCount: 5 }]);
    expect((await scene.recovery.candidates({ groupId: from, current: false, limit: 1 })).data).toMatchObject([
      { decision: "rejected" },
    ]);
    // In a process that starts now as well, and for another service's report of the same.
    const answer = await scene.another().evaluate({ errorCode: "E_BOOK", errorMessage: "the journal is locked", topic: TOPIC });
    expect(answer.groupId).toBe(into);
    expect((await scene.engine.provenance({ groupId: into }, { limit: 50 })).data).toContainEqual(
      expect.objectContaining({ eventType: "merged", actor: "ann", reason: "one outage" }),
    );
  });

  it("across codes works too, by the fingerprint", async () => {
    const scene = await createScene();
    const [a = "", b = ""] = [
      ...(await scene.die(["broken pipe"], { code: "E_A" })),
      ...(await scene.die(["broken pipe"], { code: "E_B" })),
    ];
    const into = (await groupOf(scene, a)) ?? 0;
    await scene.engine.merge(into, [(await groupOf(scene, b)) ?? 0], "one switch", ANN);
    const [next] = await scene.die(["broken pipe"], { code: "E_B" });
    expect(await groupOf(scene, next)).toBe(into);
    expect(await total(scene)).toBe(3);
  });

  it("is refused for itself, for nothing, for what is not there, is merged already or is being executed", async () => {
    const scene = await createScene();
    const [into, from] = await two(scene);
    await expect(scene.engine.merge(into, [into], "x", ANN)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(scene.engine.merge(into, [], "x", ANN)).rejects.toMatchObject({ code: "invalid_request" });
    const many = Array.from({ length: 101 }, (_, i) => 1_000 + i);
    await expect(scene.engine.merge(into, many, "x", ANN)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(scene.engine.merge(into, [987], "x", ANN)).rejects.toMatchObject({ code: "group_not_found" });
    await scene.work();
    const candidate = (await scene.engine.group(from)).candidate;
    await scene.engine.update(candidate?.candidateId ?? 0, { ...ANN, selectedAction: "retry_exponential" });
    await scene.engine.execute(candidate?.candidateId ?? 0, ANN);
    await expect(scene.engine.merge(into, [from], "x", ANN)).rejects.toMatchObject({ code: "wrong_state" });
    expect(await total(scene)).toBe(2);
  });
});

describe("split", () => {
  const texts = Array.from({ length: 30 }, (_, i) => `upstream answered ${i % 3 === 0 ? 503 : 429} after ${i} ms`);

  it("takes out what contains the words, with its counts and messages, and keeps doing so", async () => {
    const scene = await createScene();
    const ids = await scene.die(texts, { code: "E_UP" });
    const { data } = await scene.engine.groups({ limit: 10 });
    expect(data).toMatchObject([{ occurrenceCount: 30 }]);
    const whole = data[0]?.groupId ?? 0;
    const { group, moved } = await scene.engine.split(whole, ["503"], "another cause", ANN);
    expect(moved).toBe(10);
    expect(group).toMatchObject({ occurrenceCount: 10, openMessages: 10 });
    expect((await scene.recovery.group(whole))?.occurrenceCount).toBe(20);
    expect(await groupOf(scene, ids[0])).toBe(group.groupId);
    expect(await groupOf(scene, ids[1])).toBe(whole);
    await scene.work();
    expect((await scene.engine.group(group.groupId)).candidate).toMatchObject({ round: 1, evaluationStatus: "evaluated" });
    const [next, other] = await scene.die(["upstream answered 503 after 99 ms", "upstream answered 15034 after 99 ms"], {
      code: "E_UP",
    });
    expect(await groupOf(scene, next)).toBe(group.groupId);
    expect(await groupOf(scene, other)).toBe(whole);
    expect(await total(scene)).toBe(32);
    expect((await scene.engine.group(group.groupId)).why.join(" ")).toContain("A person decided so (split");
  });

  it("is refused for words that nothing contains", async () => {
    const scene = await createScene();
    await scene.die(texts.slice(0, 3), { code: "E_UP" });
    const { data } = await scene.engine.groups({ limit: 10 });
    const groupId = data[0]?.groupId ?? 0;
    await expect(scene.engine.split(groupId, ["teapot"], "x", ANN)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(scene.engine.split(groupId, [" "], "x", ANN)).rejects.toMatchObject({ code: "invalid_request" });
    expect(await scene.recovery.documents.list("group_rule")).toEqual([]);
  });

  it("of a merged group takes from all its parts", async () => {
    const scene = await createScene();
    const [into, from] = await two(scene);
    await scene.engine.merge(into, [from], "one outage", ANN);
    const { group, moved } = await scene.engine.split(into, ["journal"], "not after all", ANN);
    expect(moved).toBe(1);
    expect(group.groupId).not.toBe(into);
    const [next] = await scene.die(["the journal is locked"], { code: "E_BOOK" });
    expect(await groupOf(scene, next)).toBe(group.groupId);
    expect(await total(scene)).toBe(3);
  });
});

describe("a group", () => {
  it("says why its failures are together", async () => {
    const scene = await createScene();
    const names = ["ann", "bo", "cy", "dan", "eve", "fay"];
    await scene.die(
      names.map((name, i) => `could not charge card of user ${name} at 10.0.0.${i}`),
      { code: "E_USER" },
    );
    const { data } = await scene.engine.groups({ limit: 10 });
    expect(data).toHaveLength(1);
    const { why, occurrences } = await scene.engine.group(data[0]?.groupId ?? 0);
    expect(occurrences).toHaveLength(6);
    expect(why[0]).toContain(`topic ${TOPIC}, sink http pay.example, error code E_USER`);
    expect(why.join(" ")).toMatch(/10\.0\.0\.\d/);
    expect(why.join(" ")).toMatch(/Words that vary in the same place: .*fay/);
    await expect(scene.engine.group(555)).rejects.toMatchObject({ code: "group_not_found" });
    await expect(scene.engine.occurrences(555, { limit: 1 })).rejects.toMatchObject({ code: "group_not_found" });
  });

  it("is listed with its candidate, and its candidate with it", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout(2);
    expect((await scene.engine.candidates({ limit: 10 })).data).toMatchObject([
      { candidate: { candidateId }, group: { groupId, occurrenceCount: 2 } },
    ]);
    const detail = await scene.engine.candidate(candidateId, { provenance: true });
    expect(detail).toMatchObject({
      inputs: [{ errorMessage: "no answer within 1001 ms" }, {}],
      action: { actionCode: "retry_exponential" },
      blastRadius: { messages: 2, topics: [{ topic: TOPIC, messages: 2 }] },
      provenance: [{ eventType: "action_selected" }, { eventType: "rule_evaluated" }, { eventType: "created" }],
    });
    expect((await scene.engine.candidate(candidateId)).provenance).toBe(null);
    expect(await scene.engine.stats()).toMatchObject({ groups: 1, openGroups: 1, occurrences: 2, decisions: { pending: 1 } });
  });

  it("its candidate is shown without counting all that there is", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    await scene.recovery.learn([
      ...times(3, { groupId, action: "retry_exponential", healed: 1, failed: 0 }),
      { groupId, action: "retry_exponential", healed: 0, failed: 1 },
    ]);
    const [everywhere] = await scene.engine.actions({ actionType: "retry" });
    scene.recovery.stats = () => Promise.reject(new Error("a count of everything"));
    const { action } = await scene.engine.candidate(candidateId);
    expect(action).toMatchObject({ actionCode: "retry_exponential", successes: 3, failures: 1 });
    expect(action).toEqual(everywhere);
  });

  it("is suggested for anew when a person asks, in the same round while that is open", async () => {
    const scene = await createScene();
    const { groupId, candidateId } = await scene.timeout();
    expect(await scene.engine.suggest(groupId, ANN)).toMatchObject({
      candidateId,
      evaluations: 2,
      evaluationStatus: "evaluated",
    });
    expect(await scene.work()).toEqual(["delivered"]);
    await expect(scene.engine.suggest(555, ANN)).rejects.toMatchObject({ code: "group_not_found" });
  });
});
