/**
 * Redrives on PostgreSQL, as people met their faults: a canary of each group, a receiver that is down, held groups, copies beside
 * each other, and what is ended in bulk and opened again.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, type Makegood, type Outcome, reject, topic } from "../../src/index.ts";
import type { TopicDefinition, TopicRecord } from "../../src/message/topic.ts";
import { createIds } from "../../src/platform/ids.ts";
import { carrierDefinition, carrierTopicName } from "../../src/recovery/carrier.ts";
import { createRecords } from "../../src/recovery/records.ts";
import type { Recovery } from "../../src/recovery/recovery.ts";
import { REDRIVE_DEFAULTS } from "../../src/recovery/redrive/request.ts";
import { type Home, homeOf } from "../../src/store/home.ts";
import { dropSchema, freshSchema, openStore } from "../support/postgres.ts";
import { until } from "../unit/delivery/support.ts";

const newIds = createIds();
const ANN = { actor: "ann", actorType: "human" } as const;

describe("redrives", () => {
  const schema = freshSchema();
  /** What the receiver says to each text; absent: it takes it. */
  const answers = new Map<string, () => Outcome>();
  const taken: string[] = [];
  const sink = (text: string): Outcome | undefined => {
    const answer = answers.get(text.split(" ")[0] as string)?.();
    if (answer === undefined) taken.push(text);
    return answer;
  };
  const names = ["mixed", "down", "held", "bulk", "sides", "tripped", "raced"] as const;
  const topics = names.map((name) =>
    topic<string>(`shop/${name}`, {
      sink: (text) => sink(text) ?? undefined,
      retry: { policy: "exponential", attemptsMax: 1 },
      ...(name === "sides" && { fallback: { kind: "notify" }, compensation: { kind: "notify" } }),
    }),
  );
  let mg: Makegood;
  let engine: Recovery;
  let stop: () => Promise<unknown>;

  beforeAll(async () => {
    mg = await createMakegood({ store: await openStore({ schema }), topics, pollMs: 50 });
    engine = mg.recovery as Recovery;
    const worker = mg.work();
    stop = () => worker.stop();
  });
  afterAll(async () => {
    await stop();
    await mg.close();
    await dropSchema(schema);
  });

  const refuses = (word: string, code: string) => answers.set(word, () => reject(`${word} was refused`, { code }));

  /** So many dead letters of each word, ingested. */
  async function die(name: (typeof names)[number], words: Readonly<Record<string, number>>): Promise<void> {
    const payloads = Object.entries(words).flatMap(([word, n]) =>
      Array.from({ length: n }, (_, i) => ({ payload: `${word} ${i}` })),
    );
    for (const word of Object.keys(words)) refuses(word, `E_${word.toUpperCase()}`);
    await mg.enqueueMany(topics[names.indexOf(name)] as (typeof topics)[number], payloads);
    await until(async () => {
      const { data } = await engine.groups({ topic: `shop/${name}`, limit: 10 });
      return data.reduce((sum, group) => sum + group.openMessages, 0) >= payloads.length;
    });
  }
  const groupsOf = async (name: string) => (await engine.groups({ topic: `shop/${name}`, limit: 10 })).data;
  const ended = async (id: string) => {
    await until(async () => !["running", "planned"].includes((await engine.redrive(id)).status));
    return engine.redrive(id);
  };

  it("R7: each group has a canary of its own; the one that fails stops alone, the others go on", async () => {
    await die("mixed", { poison: 40, good: 30 });
    answers.delete("good");
    const request = { select: { topic: "shop/mixed" }, reason: "back", ratePerSecond: 500, rampFrom: 100, canary: 5 };
    const { redrive } = await engine.startRedrive(request, ANN);
    const after = await ended(redrive.redriveId);
    expect(taken.filter((text) => text.startsWith("good"))).toHaveLength(30);
    expect(after).toMatchObject({
      status: "stopped",
      counts: { selected: 70, waiting: 35, healed: 30, failed: 5 },
      verdicts: { healed: 1, failed: 1, inconclusive: 0, undecided: 0 },
    });
    expect(after.statusReason).toContain("1 of 2 groups failed");
    expect(after.groups[0]).toMatchObject({
      verdict: "failed",
      waiting: 35,
      failed: 5,
      reason: expect.stringContaining("5 of 5"),
    });
    const held = (await engine.redriveItems(redrive.redriveId, { state: "waiting", limit: 100 })).data;
    expect(held.map(({ reason }) => reason)).toEqual(Array.from({ length: 35 }, () => "group_failed"));
    answers.delete("poison");
    await engine.resumeRedrive(redrive.redriveId, ANN);
    expect(await ended(redrive.redriveId)).toMatchObject({ status: "done", counts: { healed: 65, failed: 5 } });
  });

  it("R8: what is held is left out, counted and named; said otherwise it is included", async () => {
    await die("held", { kept: 4, free: 3 });
    const kept = (await groupsOf("held")).find(({ errorCode }) => errorCode === "E_KEPT");
    const { candidateId } = await engine.suggest(kept?.groupId as number, ANN);
    await engine.update(candidateId, { ...ANN, selectedAction: "manual_intervention" });
    expect(await engine.execute(candidateId, ANN)).toMatchObject({ executionStatus: "succeeded" });
    for (const word of ["kept", "free"]) answers.delete(word);
    const select = { topic: "shop/held" };
    const planned = (await engine.startRedrive({ select, reason: "back", dryRun: true }, ANN)).redrive;
    expect(planned).toMatchObject({ counts: { selected: 7, waiting: 3, skipped: 4 }, leftOut: { held: 4 } });
    await expect(engine.startRedrive({ select: { groupId: kept?.groupId }, reason: "back" }, ANN)).rejects.toMatchObject({
      code: "nothing_selected",
      message: expect.stringContaining("includeHeld"),
    });
    await engine.cancelRedrive(planned.redriveId, ANN);
    const all = (await engine.startRedrive({ select: { ...select, includeHeld: true }, reason: "back" }, ANN)).redrive;
    expect(all).toMatchObject({ counts: { selected: 7, waiting: 7 }, leftOut: {} });
    expect(await ended(all.redriveId)).toMatchObject({ status: "done", counts: { healed: 7 } });
  });

  it("R8: while a receiver is down the redrive says so, with the reason and the next probe", async () => {
    await die("down", { line: 20 });
    await mg.store.topics.trip("shop/down", 3_600_000, "connect ECONNREFUSED");
    answers.delete("line");
    const { redrive } = await engine.startRedrive(
      { select: { topic: "shop/down" }, reason: "is it back", canary: 5, rampFrom: 100 },
      ANN,
    );
    await until(async () => (await engine.redrive(redrive.redriveId)).counts.sent === 5);
    const waits = await engine.redrive(redrive.redriveId);
    expect(waits).toMatchObject({ status: "running", counts: { waiting: 15, sent: 5 }, runner: expect.any(String) });
    expect(waits.heldReceivers).toMatchObject([{ topic: "shop/down", tenantId: null, reason: "connect ECONNREFUSED" }]);
    expect(waits.heldReceivers[0]?.nextProbeAt.getTime()).toBeGreaterThan(Date.parse("2026-01-01"));
    await mg.store.topics.reset("shop/down");
    expect(await ended(redrive.redriveId)).toMatchObject({ status: "done", counts: { healed: 20 }, heldReceivers: [] });
  });

  it("bulk discard by time and by groups is done at once, and is opened again by its inverse", async () => {
    await die("bulk", { spam: 6, ham: 2 });
    const spam = (await groupsOf("bulk")).find(({ errorCode }) => errorCode === "E_SPAM");
    const none = { topic: "shop/bulk", until: new Date("2020-01-01") };
    await expect(engine.startRedrive({ select: none, mode: "discard", reason: "old" }, ANN)).rejects.toMatchObject({
      code: "nothing_selected",
    });
    const select = { groupIds: [spam?.groupId as number], since: new Date("2020-01-01") };
    const { redrive } = await engine.startRedrive({ select, mode: "discard", reason: "test orders" }, ANN);
    expect(await ended(redrive.redriveId)).toMatchObject({ status: "done", mode: "discard", counts: { healed: 6 } });
    const undo = { select: { redriveId: redrive.redriveId }, mode: "reopen", reason: "they were real" } as const;
    const again = (await engine.startRedrive(undo, ANN)).redrive;
    expect(await ended(again.redriveId)).toMatchObject({ status: "done", counts: { selected: 6, healed: 6 } });
    expect((await groupsOf("bulk")).find(({ groupId }) => groupId === spam?.groupId)?.openMessages).toBe(6);
    await expect(engine.startRedrive({ ...undo, select: { redriveId: again.redriveId } }, ANN)).rejects.toMatchObject({
      code: "wrong_state",
    });
  });

  it("R4: circuit_breaker on an open breaker gives it the reason and the cool-down, and no probe is granted before that", async () => {
    await die("tripped", { amps: 3 });
    const [group] = await groupsOf("tripped");
    await mg.store.topics.trip("shop/tripped", 100, "five failures");
    const { candidateId } = await engine.suggest(group?.groupId as number, ANN);
    await engine.update(candidateId, { ...ANN, selectedAction: "circuit_breaker" });
    await engine.approve(candidateId, ANN);
    await engine.execute(candidateId, ANN);
    const { breaker } = (await mg.store.topics.get("shop/tripped")) ?? {};
    expect(breaker).toMatchObject({ state: "open", reason: `opened by ann for candidate ${candidateId}` });
    expect(breaker?.probeInMs).toBeGreaterThan(30_000);
    expect(await mg.store.topics.probe("shop/tripped", "another", 1_000)).toBe(false);
  });

  /** A copy of these dead letters to a carrier that does not deliver. */
  async function copied(carrier: "fallback" | "compensation", ids: readonly string[]): Promise<string> {
    const record = (await mg.store.topics.get("shop/sides")) as TopicRecord;
    const name = carrierTopicName(carrier, "shop/sides");
    await mg.store.topics.put(carrierDefinition(carrier, record) as TopicDefinition, "api");
    await mg.store.topics.pause(name, true);
    const redriveId = newIds();
    const select = { ids, limit: 10, generationMax: 10 };
    const about = {
      idempotencyKey: null,
      requestHash: "",
      status: "running",
      mode: "copy",
      action: null,
      candidateId: null,
    } as const;
    const plan = JSON.stringify({ ...REDRIVE_DEFAULTS, canary: 0, carrier });
    const redrives = createRecords(homeOf(mg.store) as Home).redrives;
    await redrives.start({ ...about, redriveId, actor: "ann", reason: "x", select, plan, provenance: [] });
    await until(async () => (await engine.redrive(redriveId)).counts.waiting === 0);
    return redriveId;
  }

  it("R15: while a copy goes to the fallback a compensation of it is left alone, and the other way round", async () => {
    await die("sides", { left: 1, right: 1 });
    const { data } = await mg.store.list({ topic: "shop/sides", limit: 10 });
    const [one, two] = data.map(({ id }) => id) as [string, string];
    for (const [id, first, second] of [
      [one, "fallback", "compensation"],
      [two, "compensation", "fallback"],
    ] as const) {
      expect(await engine.redrive(await copied(first, [id]))).toMatchObject({ counts: { sent: 1 } });
      expect(await engine.redrive(await copied(second, [id]))).toMatchObject({ leftOut: { carried: 1 } });
      expect(await engine.redrive(await copied(first, [id])), "the same effect once more").toMatchObject({ counts: { sent: 1 } });
    }
    await expect(mg.replay(one, { actor: "ann" })).rejects.toMatchObject({ code: "carried" });
    expect(await mg.replay(one, { actor: "ann", force: true })).toMatchObject({ generation: 1 });
  });

  it("R15: a replay by hand sees a copy that began while it waited for the row", async () => {
    await die("raced", { pair: 1 });
    const { data } = await mg.store.list({ topic: "shop/raced", limit: 10 });
    const [dead] = data;
    await mg.store.topics.pause("shop/mixed", true);
    const carrier = await mg.enqueue(topics[0] as (typeof topics)[number], "carries it");
    const home = homeOf(mg.store) as Home;
    let replay: Promise<unknown> = Promise.resolve();
    await home.transaction("send a copy", async ({ run }) => {
      await run(`select 1 from ${home.s}.dead_letter where id = $1::uuid for no key update`, [dead?.id]);
      replay = mg.replay(dead?.id as string, { actor: "ann" }).catch((error) => error);
      await until(async () => {
        const waits =
          "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%dead_letter%for no key update%'";
        return (await home.read("look")(waits)).length > 0;
      });
      const id = newIds();
      await run(
        `insert into ${home.s}.redrive (id, request_hash, status, mode, actor, reason, selection, plan, created_at, selected, sent)
          values ($1::uuid, '', 'paused', 'copy', 'bo', 'x', '{}', '{"carrier":"fallback"}', now(), 1, 1)`,
        [id],
      );
      await run(
        `insert into ${home.s}.redrive_item (redrive_id, n, message_id, generation, revision, state, carrier_id, sent_at)
          values ($1::uuid, 1, $2::uuid, 0, 1, 1, $3::uuid, now())`,
        [id, dead?.id, carrier.id],
      );
    });
    expect(await replay).toMatchObject({ code: "carried" });
    expect(await mg.store.get(dead?.id as string)).toMatchObject({ status: "dead", resolution: "open" });
  });
});
