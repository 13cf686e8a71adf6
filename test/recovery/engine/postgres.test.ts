/**
 * The engine on PostgreSQL, in two processes' worth of stores: what the memory store gives for nothing (one write at a time) must hold
 * between connections, and every move of the engine must pass the database's own fence.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, type Makegood, reject, topic } from "../../../src/index.ts";
import type { Recovery } from "../../../src/recovery/recovery.ts";
import { dropSchema, freshSchema, openStore } from "../../support/postgres.ts";
import { until } from "../../unit/delivery/support.ts";
import { ANN, BO } from "./scene.ts";

describe("the engine on PostgreSQL", () => {
  const schema = freshSchema();
  const processes: Makegood[] = [];
  const charge = topic<string>("shop/charge", { sink: (text) => reject(text, { code: "TIMEOUT" }) });
  let engines: Recovery[] = [];
  const one = (): Recovery => engines[0] as Recovery;
  const report = (errorCode: string, errorMessage: string, idempotencyKey: string | null = null) => ({
    failureMatchId: null,
    idempotencyKey,
    source: "api" as const,
    topic: null,
    sink: null,
    errorCode,
    errorMessage,
    stackTrace: null,
    skillId: null,
    tenantId: null,
    failurePayload: "{}",
    enqueueEvaluation: true,
  });

  beforeAll(async () => {
    for (let i = 0; i < 2; i++) {
      processes.push(await createMakegood({ store: await openStore({ schema }), topics: [charge], pollMs: 50 }));
    }
    engines = processes.map(({ recovery }) => recovery as Recovery);
  });

  afterAll(async () => {
    await Promise.all(processes.map((mg) => mg.close()));
    await dropSchema(schema);
  });

  it("REC-44: a hundred ingests at once, from two processes, are one group of a hundred and one candidate", async () => {
    const names = ["ann", "bo", "cy", "dan", "eve"];
    const texts = Array.from({ length: 100 }, (_, i) => `could not charge card of user ${names[i % 5]} at 10.0.0.${i}`);
    await Promise.all(texts.map((text, i) => engines[i % 2]?.ingest(report("E_CARD", text, `k${i}`), ANN)));
    // Which template came first depends on the order; that it is one group in the end does not.
    await Promise.all(engines.map((engine) => engine.ingest(report("E_CARD", texts[0] as string, "k0"), ANN)));
    await one().ingest(report("E_CARD", "could not charge card of user fay at 10.0.0.7", "k100"), ANN);
    const { data } = await one().groups({ errorCode: "E_CARD", limit: 10 });
    expect(data.map(({ occurrenceCount }) => occurrenceCount)).toEqual([101]);
    expect((await one().candidates({ groupId: data[0]?.groupId, decision: "pending", limit: 10 })).data).toHaveLength(1);
  });

  it("DR-1: from a death to a suggestion by itself; of eight executions in two processes one happens", async () => {
    const [mg] = processes;
    const worker = mg?.work();
    await mg?.enqueueMany(
      charge,
      Array.from({ length: 5 }, (_, i) => ({ payload: `no answer within ${i} ms` })),
    );
    const evaluated = async () => (await one().candidates({ action: "retry_exponential", limit: 10 })).data[0]?.candidate;
    await until(async () => (await one().groups({ topic: "shop/charge", limit: 1 })).data[0]?.occurrenceCount === 5);
    await until(async () => (await evaluated())?.evaluationStatus === "evaluated");
    await worker?.stop();
    const { candidateId = 0 } = (await evaluated()) ?? {};
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => engines[i % 2]?.execute(candidateId, { actor: `w${i}`, actorType: "human" })),
    );
    expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await one().redrives({ limit: 10 })).data).toHaveLength(1);
    expect((await one().candidate(candidateId)).candidate).toMatchObject({ executionStatus: "executing", leaseUntil: null });
  });

  it("every move of the engine passes the database's fence", async () => {
    const { candidateId, groupId } = await one().ingest(report("AUTH", "the token has expired"), ANN);
    expect(await one().suggest(groupId, ANN)).toMatchObject({ evaluationStatus: "evaluated", selectedAction: "notify_ops" });
    await one().approve(candidateId, ANN);
    expect(await one().update(candidateId, { ...ANN, selectedAction: "manual_intervention" })).toMatchObject({
      decision: "pending",
    });
    expect(await one().execute(candidateId, BO)).toMatchObject({ executionStatus: "succeeded", owner: "operators" });
    expect(await one().update(candidateId, { ...ANN, executionStatus: "rolled_back" })).toMatchObject({
      executionStatus: "rolled_back",
    });
    const next = await one().suggest(groupId, ANN);
    expect(next.round).toBe(2);
    await one().approve(next.candidateId, ANN);
    expect(await one().reject(next.candidateId, BO)).toMatchObject({ decision: "rejected" });
    const last = await one().suggest(groupId, ANN);
    expect(await one().update(last.candidateId, { ...ANN, executionStatus: "skipped" })).toMatchObject({
      executionStatus: "skipped",
    });
    const events = (await one().provenance({ groupId }, { limit: 100 })).data.map(({ eventType }) => eventType);
    expect(events).toEqual(
      expect.arrayContaining(["created", "rule_evaluated", "approved", "executed", "rolled_back", "rejected", "skipped"]),
    );
  });

  it("two who approve at once, through two processes, both count", async () => {
    await one().putAction(
      "notify_ops",
      `{"approval":"two"}`,
      (await one().actions()).find(({ actionCode }) => actionCode === "notify_ops")?.version ?? 0,
      ANN,
    );
    const { candidateId, groupId } = await one().ingest(report("FORBIDDEN", "not allowed"), ANN);
    await one().suggest(groupId, ANN);
    await Promise.all([engines[0]?.approve(candidateId, ANN), engines[1]?.approve(candidateId, BO)]);
    expect((await one().candidate(candidateId)).candidate).toMatchObject({ decision: "approved", approvals: [{}, {}] });
  });

  it("merges extend one rule, the other process follows it, a split is repeatable, and a rule is deleted", async () => {
    const [a, b, c] = ["the ledger refused to close", "the journal is locked", "no stamp was left"] as const;
    const at = async (engine: number, text: string) => (await engines[engine]?.ingest(report("E_BOOK", text), ANN))?.groupId ?? 0;
    const [into, second, third] = [await at(0, a), await at(0, b), await at(0, c)];
    await one().merge(into, [second], "one outage", ANN);
    await engines[1]?.merge(into, [third], "the same", BO);
    expect(await one().groupRules()).toMatchObject([{ kind: "merge", version: 2, actor: "bo", templates: { length: 3 } }]);
    expect([await at(1, b), await at(0, c)]).toEqual([into, into]);
    const split = await one().split(into, ["journal"], "not after all", ANN);
    expect(split.moved).toBe(2);
    expect(await engines[1]?.split(into, ["journal"], "again", BO)).toMatchObject({
      moved: 0,
      group: { groupId: split.group.groupId },
    });
    expect(await at(1, b)).toBe(split.group.groupId);
    for (const { id } of await one().groupRules()) await one().deleteGroupRule(id, null, ANN);
    expect(await engines[1]?.groupRules()).toEqual([]);
  });
});
