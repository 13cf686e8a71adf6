/**
 * The runner on a clock that is moved by hand: canary, bound, pause, resume, cancel, dry runs, the handing over
 * from a killed process to the next, and what is told of it all.
 */
import { afterEach, describe, expect, it } from "vitest";
import { MakegoodError } from "../../../src/message/errors.ts";
import type { Redrive } from "../../../src/recovery/redrive/redrive.ts";
import type { Redrives } from "../../../src/recovery/redrive/redrives.ts";
import { ANN, createScene, type Scene, TOPIC } from "./scene.ts";

const REQUEST = { select: { topic: TOPIC }, reason: "the receiver is back" };
const DAY_MS = 24 * 3_600_000;

let running: Redrives[] = [];

function start(scene: Scene, change?: Parameters<Scene["process"]>[0]) {
  const process = scene.process(change);
  process.runner.start();
  running.push(process);
  return process;
}

afterEach(() => {
  // Nobody moves their clocks any more.
  running = [];
});

describe("a redrive", () => {
  it("sends a canary, then the rest, each once, and is done when every ending is known", async () => {
    const scene = await createScene();
    const ids = await scene.die(60);
    const before = new Map(await Promise.all(ids.map(async (id) => [id, (await scene.store.get(id))?.payload] as const)));
    const process = start(scene);
    const { redrive, created } = await process.startRedrive(REQUEST, ANN);
    expect([created, redrive.status, redrive.counts.selected]).toEqual([true, "running", 60]);
    await scene.pass(1_500, () => "nothing");
    expect(await scene.counts(redrive)).toMatchObject({ status: "running", sent: 5, waiting: 55 });
    // What a held message waits for is a person: here, the receiver's answer.
    const canary = (await process.redriveItems(redrive.redriveId, { state: "sent", limit: 10 })).data.map(
      ({ messageId }) => messageId,
    );
    for (const id of canary) await scene.store.intervene({ id, action: "resolve", actor: "test", reason: null });
    await scene.pass(8_000);
    expect(await scene.counts(redrive)).toMatchObject({
      status: "done",
      reason: null,
      healed: 60,
      waiting: 0,
      sent: 0,
      failed: 0,
    });
    for (const id of ids.filter((one) => !canary.includes(one))) {
      const message = await scene.store.get(id);
      expect(message).toMatchObject({ status: "delivered", generation: 1, payload: before.get(id) });
    }
    expect(scene.heard.filter((event) => event.type === "redrive").at(-1)).toMatchObject({
      status: "done",
      counts: { healed: 60 },
    });
    const told = scene.heard.flatMap((event) => (event.type === "redrive" ? [event.changed] : []));
    for (const state of ["sent", "healed"] as const)
      expect(
        told.reduce((sum, one) => sum + one[state], 0),
        state,
      ).toBe(60);
  });

  it("EV-9: with a concurrency of five sends the sixth when one has ended", async () => {
    const scene = await createScene();
    await scene.die(12);
    const process = start(scene);
    const quick = { canary: 0, ratePerSecond: 1_000, rampFrom: 1_000 };
    const { redrive } = await process.startRedrive({ ...REQUEST, ...quick, concurrency: 5 }, ANN);
    await scene.pass(3_000, () => "nothing");
    expect(await scene.counts(redrive)).toMatchObject({ status: "running", sent: 5, waiting: 7 });
    const [first] = (await process.redriveItems(redrive.redriveId, { state: "sent", limit: 1 })).data;
    await scene.store.intervene({ id: first?.messageId ?? "", action: "resolve", actor: "test", reason: null });
    await scene.pass(3_000, () => "nothing");
    expect(await scene.counts(redrive)).toMatchObject({ status: "running", sent: 5, waiting: 6, healed: 1 });
  });

  it("attack 26: into a receiver that is still broken it stops by itself, and most is untouched", async () => {
    const scene = await createScene();
    const ids = await scene.die(100);
    const process = start(scene);
    const { redrive } = await process.startRedrive(REQUEST, ANN);
    await scene.pass(3_000, () => "dead");
    expect(await scene.counts(redrive)).toMatchObject({ status: "stopped", failed: 5, waiting: 95 });
    expect((await scene.counts(redrive)).reason).toBe("5 of 5 of the canary failed, more than the share of 0.5 that was allowed");
    const generations = await Promise.all(ids.map(async (id) => (await scene.store.get(id))?.generation));
    expect(generations.filter((generation) => generation === 0)).toHaveLength(95);

    // A person resumes it: another canary first, and what failed is not tried again.
    await process.resumeRedrive(redrive.redriveId, ANN);
    await scene.pass(3_000, () => "dead");
    expect(await scene.counts(redrive)).toMatchObject({ status: "stopped", failed: 10, waiting: 90 });
    await process.resumeRedrive(redrive.redriveId, ANN);
    await scene.pass(10_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", failed: 10, healed: 90 });
  });

  it("stops in the middle when the receiver breaks again, at the bound", async () => {
    const scene = await createScene();
    await scene.die(400);
    const process = start(scene);
    const { redrive } = await process.startRedrive({ ...REQUEST, failureShareMax: 0.2 }, ANN);
    let answered = 0;
    await scene.pass(20_000, () => (++answered <= 60 ? "delivered" : "dead"), 100);
    const counts = await scene.counts(redrive);
    expect(counts.status).toBe("stopped");
    expect(counts.healed).toBe(60);
    // One share of what was known when it was looked at, and what was on its way.
    expect(counts.failed).toBeLessThan(40);
    expect(counts.waiting).toBeGreaterThan(280);
  });

  it("is paused within a step, resumed where it was, and cancelled for good", async () => {
    const scene = await createScene();
    await scene.die(200);
    const process = start(scene);
    const { redrive } = await process.startRedrive({ ...REQUEST, canary: 0, rampFrom: 10, ratePerSecond: 10 }, ANN);
    await scene.pass(3_000);
    const paused = await process.pauseRedrive(redrive.redriveId, { ...ANN, reason: "lunch" });
    expect([paused.status, paused.statusReason]).toEqual(["paused", "paused by ann: lunch"]);
    const sent = paused.counts.selected - paused.counts.waiting;
    expect(sent).toBeGreaterThan(20);
    await scene.pass(10_000);
    expect((await scene.counts(redrive)).waiting).toBe(200 - sent);
    expect((await process.pauseRedrive(redrive.redriveId, ANN)).version, "pressed twice").toBe(paused.version);
    await expect(process.resumeRedrive(redrive.redriveId, { ...ANN, version: 1 })).rejects.toMatchObject({
      code: "version_conflict",
    });
    await process.resumeRedrive(redrive.redriveId, { ...ANN, version: paused.version });
    await scene.pass(2_000);
    const { waiting } = (await process.cancelRedrive(redrive.redriveId, { ...ANN, reason: "enough" })).counts;
    expect(waiting).toBe(0);
    await scene.pass(5_000);
    const end = await scene.counts(redrive);
    expect(end.status).toBe("cancelled");
    expect(end.healed + end.skipped).toBe(200);
    expect(end.skipped).toBeGreaterThan(100);
    const told = scene.heard.flatMap((event) => (event.type === "redrive" ? [event.changed] : []));
    const sums = (["sent", "healed", "skipped"] as const).map((state) => told.reduce((sum, one) => sum + one[state], 0));
    expect(sums, "each message is told of once").toEqual([end.healed, end.healed, end.skipped]);
    await expect(process.resumeRedrive(redrive.redriveId, ANN)).rejects.toMatchObject({ code: "wrong_state" });
    const { data } = await scene.recovery.provenance({ redriveId: redrive.redriveId }, { limit: 50 });
    expect(data.map(({ eventType, actor }) => `${eventType} ${actor}`).reverse()).toEqual([
      "redrive_running ann",
      "redrive_paused ann",
      "redrive_resumed ann",
      "redrive_cancelled ann",
    ]);
  });

  it("as a dry run touches nothing until it is resumed, and then only what was seen", async () => {
    const scene = await createScene();
    const seen = await scene.die(10);
    const process = start(scene);
    const { redrive } = await process.startRedrive({ ...REQUEST, dryRun: true }, ANN);
    expect([redrive.status, redrive.counts.selected]).toEqual(["planned", 10]);
    const later = await scene.die(10);
    await scene.pass(5_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "planned", waiting: 10 });
    await process.resumeRedrive(redrive.redriveId, ANN);
    await scene.pass(5_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 10 });
    for (const id of seen) expect((await scene.store.get(id))?.status).toBe("delivered");
    for (const id of later) expect((await scene.store.get(id))?.status).toBe("dead");
  });

  it("that was only planned is cancelled after a day", async () => {
    const scene = await createScene();
    await scene.die(3);
    const process = start(scene, { settings: { pollMs: 300_000 } });
    const { redrive } = await process.startRedrive({ ...REQUEST, dryRun: true }, ANN);
    await scene.clock.advance(DAY_MS - 1_000_000);
    expect((await scene.counts(redrive)).status).toBe("planned");
    await scene.clock.advance(2_000_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "cancelled", reason: "nobody resumed this dry run in time" });
  });

  it("is done after a day although some endings are unknown, and says so; a ending that comes later still counts", async () => {
    const scene = await createScene();
    const ids = await scene.die(3);
    const process = start(scene, { settings: { pollMs: 20_000 } });
    const { redrive } = await process.startRedrive({ ...REQUEST, canary: 0 }, ANN);
    await scene.pass(2_000, () => "nothing");
    await scene.clock.advance(60_000);
    await scene.clock.advance(DAY_MS);
    await scene.clock.advance(120_000);
    const { status, reason, sent } = await scene.counts(redrive);
    expect([status, sent]).toEqual(["done", 3]);
    expect(reason).toContain("3 were sent 24 hours ago or more");
    await scene.store.intervene({ id: ids[0] as string, action: "resolve", actor: "ann", reason: null });
    await scene.clock.advance(700_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", sent: 2, healed: 1 });
  });
});

describe("several processes and redrives", () => {
  it("a runner that dies before it kept anything does not make the day begin anew", async () => {
    const scene = await createScene();
    await scene.die(3);
    const first = start(scene);
    const { redrive } = await first.startRedrive({ ...REQUEST, canary: 0 }, ANN);
    await scene.pass(1_000, () => "nothing");
    first.lives.on = false;
    expect(await scene.recovery.redrives.get(redrive.redriveId)).toMatchObject({ state: null, counts: { sent: 3 } });
    await scene.clock.advance(DAY_MS - 3_600_000);
    start(scene, { settings: { pollMs: 20_000 } });
    await scene.clock.advance(1_800_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "running", sent: 3 });
    await scene.clock.advance(2_000_000);
    expect(await scene.counts(redrive)).toMatchObject({
      status: "done",
      reason: expect.stringContaining("3 were sent 24 hours ago or more"),
    });
  });

  it("a killed runner's redrive is continued by another after its lease, and no message twice", async () => {
    const scene = await createScene();
    const ids = await scene.die(300);
    const first = start(scene);
    const { redrive } = await first.startRedrive({ ...REQUEST, rampFrom: 50 }, ANN);
    await scene.pass(3_000);
    first.lives.on = false;
    const { waiting } = await scene.counts(redrive);
    expect(waiting).toBeGreaterThan(100);
    const second = start(scene);
    await scene.pass(6_000);
    expect((await scene.counts(redrive)).waiting, "its lease still runs").toBe(waiting);
    await scene.pass(15_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 300 });
    for (const id of ids) expect((await scene.store.get(id))?.generation).toBe(1);
    await second.runner.stop();
  });

  it("DR-24: a runner that was held up past its lease finds its fence gone and sends nothing more", async () => {
    const scene = await createScene();
    const ids = await scene.die(40);
    const { redrives } = scene.recovery;
    let goOn = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const answers: unknown[] = [];
    const late = {
      ...redrives,
      async send(...args: Parameters<typeof redrives.send>) {
        await held;
        const answer = await redrives.send(...args);
        answers.push(answer);
        return answer;
      },
    };
    const first = start(scene, { recovery: { ...scene.recovery, redrives: late } });
    const { redrive } = await first.startRedrive(REQUEST, ANN);
    await scene.pass(2_000);
    expect((await scene.counts(redrive)).waiting, "it is held up in its first send").toBe(40);
    start(scene);
    await scene.pass(9_000);
    const between = await scene.counts(redrive);
    expect(between.healed).toBeGreaterThan(0);
    expect(between.waiting, "the other one is in the middle of it").toBeGreaterThan(0);
    goOn();
    await scene.pass(15_000);
    expect(answers[0]).toEqual({ kind: "lost" });
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 40 });
    for (const id of ids) expect((await scene.store.get(id))?.generation).toBe(1);
  });

  it("DR-13, DR-16: while the store fails nothing is replayed and nothing counts as replayed; afterwards all of it is, once", async () => {
    const scene = await createScene();
    const ids = await scene.die(30);
    const { redrives } = scene.recovery;
    let fails: boolean = true;
    const failing =
      (name: "send" | "look" | "next") =>
      async (...args: unknown[]): Promise<never> => {
        if (fails) throw new MakegoodError("store_unavailable", "the database is away", {});
        return (redrives[name] as (...args: unknown[]) => Promise<never>)(...args);
      };
    const away = { ...redrives, send: failing("send"), look: failing("look"), next: failing("next") };
    const process = start(scene, { recovery: { ...scene.recovery, redrives: away } });
    const { redrive } = await process.startRedrive(REQUEST, ANN);
    await scene.pass(10_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "running", waiting: 30, sent: 0, skipped: 0 });
    for (const id of ids) expect(await scene.store.get(id)).toMatchObject({ status: "dead", generation: 0 });
    expect(scene.heard.some((event) => event.type === "store_error" && event.error.includes("the database is away"))).toBe(true);
    fails = false;
    await scene.pass(45_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 30 });
    for (const id of ids) expect((await scene.store.get(id))?.generation).toBe(1);
  });

  it("a send whose answer did not come may have sent: the canary does not grow by it", async () => {
    const scene = await createScene();
    await scene.die(50);
    const { redrives } = scene.recovery;
    let broken = false;
    const unanswered = {
      ...redrives,
      async send(...args: Parameters<typeof redrives.send>) {
        const answer = await redrives.send(...args);
        if (broken) return answer;
        broken = true;
        throw new MakegoodError("outcome_unknown", "the connection broke before the answer came");
      },
    };
    const process = start(scene, { recovery: { ...scene.recovery, redrives: unanswered } });
    const plan = { canary: 5, rampFrom: 1_000, ratePerSecond: 1_000 };
    const { redrive } = await process.startRedrive({ ...REQUEST, ...plan }, ANN);
    // Nothing is delivered yet: the canary is waited for.
    await scene.clock.advance(5_000);
    expect(broken).toBe(true);
    expect(await scene.counts(redrive)).toMatchObject({ status: "running", sent: 5, waiting: 45 });
  });

  it("looks at what was sent on a clock of its own, and on at once while a full look ends some", async () => {
    const scene = await createScene();
    await scene.die(3_500);
    const { redrives } = scene.recovery;
    const looks: number[] = [];
    const sends: number[] = [];
    const counted = {
      ...redrives,
      look(...args: Parameters<typeof redrives.look>) {
        looks.push(scene.clock.wallMs());
        return redrives.look(...args);
      },
      send(...args: Parameters<typeof redrives.send>) {
        sends.push(scene.clock.wallMs());
        return redrives.send(...args);
      },
    };
    const process = start(scene, { recovery: { ...scene.recovery, redrives: counted } });
    const plan = { canary: 0, rampFrom: 1_000, ratePerSecond: 1_000 };
    const { redrive } = await process.startRedrive({ ...REQUEST, ...plan }, ANN);
    for (let i = 0; i < 4; i++) await scene.clock.advance(900);
    expect(await scene.counts(redrive)).toMatchObject({ sent: 3_500, waiting: 0 });
    expect(sends.length).toBeGreaterThanOrEqual(30);
    expect(looks.length).toBeLessThan(sends.length / 3);
    await scene.attempt(() => "delivered");
    looks.length = 0;
    await scene.clock.advance(2_000);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 3_500 });
    expect(new Set(looks.slice(-4)).size, "four looks at one moment").toBe(1);
  });

  it("what is only watched is let go after a month", async () => {
    const scene = await createScene();
    await scene.die(1);
    const process = start(scene, { settings: { pollMs: 600_000 } });
    const plan = JSON.stringify({ canary: 0, ratePerSecond: 5_000, rampFrom: 5_000, failureShareMax: 1, failureMin: 10 });
    const { redrive } = (await scene.recovery.redrives.start({
      ...{
        redriveId: scene.ids(),
        idempotencyKey: null,
        requestHash: "x",
        status: "running",
        mode: "watch",
        action: "notify_ops",
      },
      ...{ candidateId: null, actor: "ann", reason: "told", plan, provenance: [] },
      select: { topic: TOPIC, limit: 10, generationMax: 10 },
    })) as { redrive: Redrive };
    process.runner.nudge();
    await scene.clock.advance(60_000);
    await scene.clock.advance(29 * DAY_MS);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", sent: 1 });
    await scene.clock.advance(2 * DAY_MS);
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", sent: 0, skipped: 1 });
    expect(await scene.recovery.redrives.claim("x", 1_000)).toBeNull();
  });

  it("a runner that is stopped hands over at once", async () => {
    const scene = await createScene();
    await scene.die(200);
    const first = start(scene);
    const { redrive } = await first.startRedrive({ ...REQUEST, rampFrom: 50 }, ANN);
    await scene.pass(2_000);
    await first.runner.stop();
    const { waiting } = await scene.counts(redrive);
    start(scene);
    await scene.pass(1_500);
    expect((await scene.counts(redrive)).waiting).toBeLessThan(waiting);
  });

  it("many redrives get on together, more than one process may hold", async () => {
    const scene = await createScene();
    const all = await scene.die(160);
    const batches = Array.from({ length: 8 }, (_, i) => all.slice(i * 20, i * 20 + 20));
    const processes = [start(scene, { settings: { heldMax: 2 } }), start(scene, { settings: { heldMax: 2 } })];
    const started = await Promise.all(
      batches.map(async (ids, i) => {
        const process = processes[i % 2] as Redrives;
        return process.startRedrive({ select: { ids }, reason: "r", canary: 0, ratePerSecond: 2, rampFrom: 2 }, ANN);
      }),
    );
    await scene.pass(14_000);
    for (const { redrive } of started) expect((await scene.counts(redrive)).healed, redrive.redriveId).toBeGreaterThan(2);
    await scene.pass(30_000);
    for (const { redrive } of started) expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 20 });
  });

  it("one process holds no more of them than it may: the others are free for the next", async () => {
    const scene = await createScene();
    const process = start(scene, { settings: { heldMax: 3 } });
    for (const id of await scene.die(5)) await process.startRedrive({ select: { ids: [id] }, reason: "r", delayMs: 1_000 }, ANN);
    await scene.clock.advance(10);
    const free = [];
    for (let i = 0; i < 3; i++) free.push(await scene.recovery.redrives.claim("another", 60_000));
    expect(free.map((claim) => claim !== null)).toEqual([true, true, false]);
  });

  it("one redrive that cannot go on stops with its reason and holds up no other", async () => {
    const scene = await createScene();
    const [broken, fine] = [await scene.die(3), await scene.die(3)];
    const process = start(scene);
    const { carrier } = { carrier: "fallback" as const };
    const plan = JSON.stringify({ canary: 0, ratePerSecond: 50, rampFrom: 50, failureShareMax: 1, failureMin: 1, carrier });
    const id = scene.ids();
    const select = { ids: broken, limit: 10, generationMax: 10 };
    const fields = {
      idempotencyKey: null,
      requestHash: "0",
      status: "running",
      mode: "copy",
      action: null,
      candidateId: null,
    } as const;
    await scene.recovery.redrives.start({ redriveId: id, select, plan, actor: "ann", reason: "r", provenance: [], ...fields });
    const { redrive } = await process.startRedrive({ select: { ids: fine }, reason: "r" }, ANN);
    await scene.pass(5_000);
    expect(await scene.counts({ redriveId: id })).toMatchObject({
      status: "stopped",
      waiting: 3,
      reason: expect.stringContaining("has no fallback sink"),
    });
    expect(await scene.counts(redrive)).toMatchObject({ status: "done", healed: 3 });
  });
});
