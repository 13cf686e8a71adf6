/**
 * What a redrive may be asked for and what is refused: every fault at once, nothing selected, too many unconfirmed, nobody to deliver;
 * and pressing twice.
 */
import { describe, expect, it } from "vitest";
import { isMakegoodError } from "../../../src/message/errors.ts";
import { readSelect, writtenSelect } from "../../../src/recovery/redrive/redrive.ts";
import type { RedriveRequest } from "../../../src/recovery/redrive/request.ts";
import { definition } from "../../../src/testing/store-conformance/fixtures.ts";
import { ANN, createScene, TOPIC } from "./scene.ts";

const REQUEST = { select: { topic: TOPIC }, reason: "mended" } as const;

async function refusal(call: Promise<unknown>): Promise<{ code: string; message: string; detail: Record<string, unknown> }> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!isMakegoodError(error)) throw new Error(`not refused: ${String(error)}`);
  return { code: error.code, message: error.message, detail: error.detail as Record<string, unknown> };
}

describe("a selection", () => {
  it("is written under the names it began with, in their order, and read from them", () => {
    const select = { groupId: 7, errorCode: "E", limit: 5, generationMax: 10 };
    const text = JSON.stringify(writtenSelect(select));
    expect(text).toBe('{"groupId":7,"code":"E","limit":5,"generationMax":10}');
    expect(readSelect(text)).toEqual(select);
  });
});

describe("a request", () => {
  it("has all its faults named in one go", async () => {
    const { startRedrive } = (await createScene()).process();
    const wrong = {
      select: { groupId: 0, topic: "no-slash", tenantId: "", errorCode: "a\0b", ids: ["x"], limit: 2_000_000 },
      mode: "copy",
      reason: " ",
      idempotencyKey: "k".repeat(256),
      confirm: -1,
      generationMax: 0.5,
      canary: -1,
      ratePerSecond: 0,
      rampFrom: Number.NaN,
      failureShareMax: 1.1,
      failureMin: 0,
      dryRun: "yes",
    } as unknown as RedriveRequest;
    const { code, detail } = await refusal(startRedrive(wrong, ANN));
    expect(code).toBe("invalid_request");
    const fields = (detail.errors as { field: string }[]).map(({ field }) => field);
    const plan = ["canary", "ratePerSecond", "rampFrom", "failureShareMax", "failureMin"];
    const select = ["groupId", "topic", "tenantId", "errorCode", "limit", "ids[0]"].map((name) => `select.${name}`);
    expect(fields).toEqual([...plan, "mode", "reason", "idempotencyKey", "dryRun", "confirm", "generationMax", ...select]);
  });

  it("names at most 10,000 messages by their ids", async () => {
    const { startRedrive } = (await createScene()).process();
    const ids = Array.from({ length: 10_001 }, (_, i) => `0190b5a0-0000-7000-8000-${String(i).padStart(12, "0")}`);
    expect((await refusal(startRedrive({ select: { ids }, reason: "x" }, ANN))).code).toBe("invalid_request");
    expect((await refusal(startRedrive({ select: { ids: ids.slice(1) }, reason: "x" }, ANN))).code).toBe("nothing_selected");
  });

  it("must select something: an empty selection is not everything", async () => {
    const scene = await createScene();
    await scene.die(2);
    const { code, message } = await refusal(scene.process().startRedrive({ select: {}, reason: "all of it" }, ANN));
    expect(code).toBe("invalid_request");
    expect(message).toContain("must name a groupId, groupIds, topic, tenantId, errorCode, since, until, redriveId or ids");
  });
});

describe("refused at start", () => {
  it("fault 42: nothing selected", async () => {
    const scene = await createScene();
    const { startRedrive } = scene.process();
    expect((await refusal(startRedrive(REQUEST, ANN))).code).toBe("nothing_selected");
    expect((await scene.recovery.redrives.list({ limit: 10 })).data).toEqual([]);
  });

  it("fault 42: nobody delivers it: the topic is gone, disabled, or a function of another process", async () => {
    const scene = await createScene({
      topics: [definition(TOPIC), { ...definition("web/hook"), sink: { kind: "http", url: "http://x/" } }],
    });
    const ids = [...(await scene.die(1)), ...(await scene.die(1, { topic: "web/hook" }))];
    const { startRedrive } = scene.process({ serves: () => false });
    const request = { select: { ids }, reason: "r" };
    const { code, message } = await refusal(startRedrive(request, ANN));
    expect(code).toBe("nobody_delivers");
    expect(message).toContain(`topic ${TOPIC} is delivered by a function, and this process has none`);
    await scene.store.topics.disable("web/hook", "410 gone");
    expect((await refusal(startRedrive({ ...request, elsewhere: true }, ANN))).message).toContain(
      "topic web/hook has a disabled sink (410 gone)",
    );
    await scene.store.topics.pause("web/hook", false);
    expect((await startRedrive({ ...request, elsewhere: true }, ANN)).created).toBe(true);
  });

  it("attack 26: more than 10,000 without the number that was seen", async () => {
    const scene = await createScene();
    await scene.die(10_001);
    const { startRedrive, redrives } = scene.process();
    const { code, message } = await refusal(startRedrive(REQUEST, ANN));
    expect(code).toBe("confirmation_needed");
    expect(message).toBe("10001 messages would be redriven: look at them, then ask again with confirm 10001");
    expect((await refusal(startRedrive({ ...REQUEST, confirm: 10_000 }, ANN))).detail).toMatchObject({ messages: 10_001 });
    expect((await redrives({ limit: 10 })).data, "what is refused leaves no list behind").toEqual([]);
    expect((await startRedrive({ ...REQUEST, confirm: 10_001 }, ANN)).redrive).toMatchObject({ status: "running" });
    expect((await startRedrive({ ...REQUEST, dryRun: true }, ANN)).redrive.status, "a dry run shows them").toBe("planned");
  });

  it("who presses again after the first was killed between freezing and running gets it run, and only if the number is still agreed to", async () => {
    const scene = await createScene();
    await scene.die(3);
    const { redrives } = scene.recovery;
    const killed = { ...redrives, change: () => Promise.reject(new Error("killed")) };
    const first = scene.process({ recovery: { ...scene.recovery, redrives: killed } });
    const request = { ...REQUEST, idempotencyKey: "press", confirm: 3 };
    await expect(first.startRedrive(request, ANN)).rejects.toThrow("killed");
    await scene.die(1);
    const { startRedrive } = scene.process();
    expect((await refusal(startRedrive({ ...request, confirm: 4 }, ANN))).code).toBe("confirmation_needed");
    const again = await startRedrive(request, ANN);
    expect(again).toMatchObject({ created: false, redrive: { status: "running", counts: { selected: 3 } } });
    expect((await startRedrive(request, ANN)).redrive.redriveId, "and once more changes nothing").toBe(again.redrive.redriveId);
  });

  it("attack 26: 10,000 are not more than 10,000", async () => {
    const scene = await createScene();
    await scene.die(1);
    const { redrives } = scene.recovery;
    const preview = async (select: Parameters<typeof redrives.preview>[0]) => ({
      ...(await redrives.preview(select)),
      messages: 10_000,
    });
    const process = scene.process({ recovery: { ...scene.recovery, redrives: { ...redrives, preview } } });
    expect((await process.startRedrive(REQUEST, ANN)).redrive.status).toBe("running");
  });

  it("what died between counting and freezing is not swept along, not even in the place of one that moved on", async () => {
    const scene = await createScene();
    const [first, ...rest] = await scene.die(3);
    const { redrives } = scene.recovery;
    const meanwhile = (happens: () => Promise<unknown>) => ({
      ...redrives,
      async start(...args: Parameters<typeof redrives.start>) {
        await happens();
        return redrives.start(...args);
      },
    });
    const replaced = async () => {
      await scene.die(1);
      await scene.store.intervene({ id: first as string, action: "resolve", actor: "bo", reason: null });
    };
    const growing = scene.process({ recovery: { ...scene.recovery, redrives: meanwhile(() => scene.die(1)) } });
    const { redrive } = await growing.startRedrive({ ...REQUEST, confirm: 3, dryRun: true }, ANN);
    expect(redrive.counts.selected).toBe(3);
    const changing = scene.process({ recovery: { ...scene.recovery, redrives: meanwhile(replaced) } });
    const { code, detail } = await refusal(changing.startRedrive({ ...REQUEST, confirm: 4 }, ANN));
    expect(code).toBe("confirmation_needed");
    const kept = await changing.redrive(detail.redriveId as string);
    expect(kept, "the frozen list is kept for a look").toMatchObject({ status: "planned", counts: { selected: 3, waiting: 3 } });
    const { data } = await changing.redriveItems(kept.redriveId, { limit: 10 });
    expect(data.map(({ messageId }) => messageId).slice(0, 2)).toEqual(rest);
  });

  it("with the mark of what was seen it takes that and no more, also when it is pressed again with another mark", async () => {
    const scene = await createScene();
    const ids = await scene.die(2);
    const process = scene.process();
    const { seen } = await scene.recovery.redrives.preview({ topic: TOPIC, limit: 10, generationMax: 10 });
    await scene.die(1);
    const request = { select: { topic: TOPIC, seen }, reason: "x", confirm: 2, idempotencyKey: "press", dryRun: true };
    const { redrive } = await process.startRedrive(request, ANN);
    const { data } = await process.redriveItems(redrive.redriveId, { limit: 10 });
    expect(data.map(({ messageId }) => messageId)).toEqual(ids);
    const again = await process.startRedrive({ ...request, select: { topic: TOPIC } }, ANN);
    expect(again).toEqual({ redrive, created: false });
    for (const id of ids) await scene.store.intervene({ id, action: "resolve", actor: "bo", reason: null });
    const gone = await refusal(process.startRedrive({ select: { topic: TOPIC, seen }, reason: "x" }, ANN));
    expect([gone.code, gone.message]).toEqual(["nothing_selected", expect.stringContaining("that were seen")]);
    const wrong = await refusal(process.startRedrive({ select: { topic: TOPIC, seen: 5 as never }, reason: "x" }, ANN));
    expect([wrong.code, wrong.detail.errors]).toEqual(["invalid_request", [expect.objectContaining({ field: "seen" })]]);
  });

  it("the generation cap: what was replayed ten times is skipped, or refused where it is all there is", async () => {
    const scene = await createScene();
    const [often] = await scene.die(1);
    for (let generation = 0; generation < 10; generation++) {
      await scene.store.intervene({ id: often as string, action: "replay", actor: "a", reason: null });
      await scene.attempt(() => "dead");
    }
    const process = scene.process();
    const { code, message } = await refusal(process.startRedrive(REQUEST, ANN));
    expect([code, message]).toEqual([
      "nothing_selected",
      expect.stringContaining("none of the 1 messages would be touched: 1 were replayed as often as may be"),
    ]);
    await scene.die(2);
    const { redrive } = await process.startRedrive(REQUEST, ANN);
    expect(redrive.counts).toMatchObject({ selected: 3, waiting: 2, skipped: 1 });
    const { data } = await process.redriveItems(redrive.redriveId, { state: "skipped", limit: 10 });
    expect(data).toMatchObject([{ messageId: often, reason: "generation_cap", generation: 10 }]);
    const raised = await process.startRedrive({ ...REQUEST, generationMax: 11 }, ANN);
    expect(raised.redrive.counts.skipped).toBe(0);
  });

  it("what is not there: redrives and items of an unknown id, also of one that is no id", async () => {
    const process = (await createScene()).process();
    for (const id of ["0190b5a0-0000-7000-8000-000000000000", "no-id"]) {
      expect((await refusal(process.redrive(id))).code).toBe("redrive_not_found");
      expect((await refusal(process.redriveItems(id, { limit: 1 }))).code).toBe("redrive_not_found");
      expect((await refusal(process.cancelRedrive(id, ANN))).code).toBe("redrive_not_found");
      expect(await process.origin(id)).toBeNull();
    }
  });
});

describe("a person's word", () => {
  const WORDS = ["pauseRedrive", "resumeRedrive", "cancelRedrive"] as const;

  it.each([
    ["planned", ["wrong_state", "running", "cancelled"]],
    ["running", ["paused", "running", "cancelled"]],
    ["paused", ["paused", "running", "cancelled"]],
    ["stopped", ["wrong_state", "running", "cancelled"]],
    ["cancelled", ["wrong_state", "wrong_state", "cancelled"]],
    ["done", ["wrong_state", "wrong_state", "wrong_state"]],
  ] as const)("while it is %s: pause, resume and cancel come to %j", async (status, expected) => {
    const scene = await createScene();
    await scene.die(1);
    const process = scene.process();
    const came: string[] = [];
    for (const word of WORDS) {
      const { redrive } = await process.startRedrive({ ...REQUEST, dryRun: true }, ANN);
      await scene.recovery.redrives.change(redrive.redriveId, { from: ["planned"], status, reason: null }, []);
      came.push(
        await process[word](redrive.redriveId, ANN).then(
          (moved) => moved.status,
          (thrown: { code: string }) => thrown.code,
        ),
      );
    }
    expect(came).toEqual(expected);
  });
});

describe("pressed twice", () => {
  it("REC-39, REC-49: under one key it is one redrive, also when the first has taken everything already; another request is a conflict", async () => {
    const scene = await createScene();
    await scene.die(20);
    const process = scene.process();
    const request = { ...REQUEST, idempotencyKey: "button-1" };
    const both = await Promise.all([process.startRedrive(request, ANN), process.startRedrive(request, ANN)]);
    expect(new Set(both.map(({ redrive }) => redrive.redriveId)).size).toBe(1);
    expect(both.map(({ created }) => created).sort()).toEqual([false, true]);
    process.runner.start();
    await scene.pass(8_000);
    const again = await process.startRedrive(request, ANN);
    expect(again).toMatchObject({ created: false, redrive: { status: "done", counts: { healed: 20 } } });
    const changes: Partial<RedriveRequest>[] = [{ reason: "another" }, { canary: 1 }, { dryRun: true }, { mode: "new_key" }];
    for (const change of changes) {
      const other = await refusal(process.startRedrive({ ...request, ...change }, ANN));
      expect([change, other.code, other.detail.id]).toEqual([change, "key_conflict", again.redrive.redriveId]);
    }
  });

  it("without a key there are two redrives, and every message is replayed once all the same", async () => {
    const scene = await createScene();
    const ids = await scene.die(40);
    const process = scene.process();
    const one = await process.startRedrive(REQUEST, ANN);
    const two = await process.startRedrive(REQUEST, ANN);
    process.runner.start();
    await scene.pass(15_000);
    for (const id of ids) expect(await scene.store.get(id)).toMatchObject({ status: "delivered", generation: 1 });
    const [first, second] = [await scene.counts(one.redrive), await scene.counts(two.redrive)];
    expect([first.status, second.status]).toEqual(["done", "done"]);
    expect(first.healed + second.healed).toBe(40);
    const { data } = await process.redriveItems(two.redrive.redriveId, { state: "skipped", limit: 100 });
    for (const { reason } of data) expect(reason).toBe("moved_on");
  });
});
