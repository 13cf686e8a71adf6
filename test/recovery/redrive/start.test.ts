/**
 * What a redrive may be asked for and what is refused: every fault at once, nothing selected, too many unconfirmed, nobody to deliver;
 * and pressing twice.
 */
import { describe, expect, it } from "vitest";
import { isMakegoodError } from "../../../src/message/errors.ts";
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

describe("a request", () => {
  it("has all its faults named in one go", async () => {
    const { startRedrive } = (await createScene()).process();
    const wrong = {
      select: { groupId: 0, topic: "no-slash", tenantId: "", code: "a\0b", ids: ["x"], limit: 2_000_000 },
      mode: "copy",
      reason: " ",
      requestKey: "k".repeat(256),
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
    const select = ["groupId", "topic", "tenantId", "code", "ids", "limit"].map((name) => `select.${name}`);
    expect(fields).toEqual([...plan, ...select, "generationMax", "mode", "reason", "requestKey", "confirm", "dryRun"]);
  });

  it("must select something: an empty selection is not everything", async () => {
    const scene = await createScene();
    await scene.die(2);
    const { code, message } = await refusal(scene.process().startRedrive({ select: {}, reason: "all of it" }, ANN));
    expect(code).toBe("invalid_request");
    expect(message).toContain("must name a groupId, topic, tenantId, code or ids");
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
    const { startRedrive } = scene.process();
    const { code, message } = await refusal(startRedrive(REQUEST, ANN));
    expect(code).toBe("confirmation_needed");
    expect(message).toBe("10001 messages would be redriven: look at them, then ask again with confirm 10001");
    expect((await refusal(startRedrive({ ...REQUEST, confirm: 10_000 }, ANN))).detail).toMatchObject({ messages: 10_001 });
    expect((await startRedrive({ ...REQUEST, confirm: 10_001 }, ANN)).redrive).toMatchObject({ status: "running" });
    expect((await startRedrive({ ...REQUEST, dryRun: true }, ANN)).redrive.status, "a dry run shows them").toBe("planned");
  });

  it("what died between counting and freezing is not swept along: the frozen list is kept for a look", async () => {
    const scene = await createScene();
    await scene.die(3);
    const { redrives } = scene.recovery;
    const late = {
      ...redrives,
      async start(...args: Parameters<typeof redrives.start>) {
        await scene.die(1);
        return redrives.start(...args);
      },
    };
    const process = scene.process({ recovery: { ...scene.recovery, redrives: late } });
    const { code, detail } = await refusal(process.startRedrive({ ...REQUEST, confirm: 3 }, ANN));
    expect(code).toBe("confirmation_needed");
    expect(await process.redrive(detail.redriveId as string)).toMatchObject({
      status: "planned",
      counts: { selected: 4, waiting: 4 },
    });
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
      expect.stringContaining("all 1 messages were replayed 10 times or more"),
    ]);
    await scene.die(2);
    const { redrive } = await process.startRedrive(REQUEST, ANN);
    expect(redrive.counts).toMatchObject({ selected: 3, waiting: 2, skipped: 1 });
    const { data } = await process.redriveItems(redrive.id, { state: "skipped", limit: 10 });
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

describe("pressed twice", () => {
  it("REC-39, REC-49: under one key it is one redrive, also when the first has taken everything already; another request is a conflict", async () => {
    const scene = await createScene();
    await scene.die(20);
    const process = scene.process();
    const request = { ...REQUEST, requestKey: "button-1" };
    const both = await Promise.all([process.startRedrive(request, ANN), process.startRedrive(request, ANN)]);
    expect(new Set(both.map(({ redrive }) => redrive.id)).size).toBe(1);
    expect(both.map(({ created }) => created).sort()).toEqual([false, true]);
    process.runner.start();
    await scene.pass(8_000);
    const again = await process.startRedrive(request, ANN);
    expect(again).toMatchObject({ created: false, redrive: { status: "done", counts: { healed: 20 } } });
    const other = await refusal(process.startRedrive({ ...request, reason: "another" }, ANN));
    expect([other.code, other.detail.id]).toEqual(["key_conflict", again.redrive.id]);
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
    const { data } = await process.redriveItems(two.redrive.id, { state: "skipped", limit: 100 });
    for (const { reason } of data) expect(reason).toBe("moved_on");
  });
});
