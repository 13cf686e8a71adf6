/** C6: what `mg` offers besides enqueue and deliver: get, list, pause, resume, cancel and reschedule. */
import { describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, isMakegoodError, type MakegoodEvent, topic } from "../../../src/index.ts";

const HOUR = 3_600_000;

async function open() {
  const events: MakegoodEvent[] = [];
  const seen: unknown[] = [];
  const mail = topic<{ to: string }>("mail/send", { sink: (payload) => void seen.push(payload) });
  const other = topic("mail/other", { sink: () => undefined });
  const onEvent = (event: MakegoodEvent): void => void events.push(event);
  const mg = await createMakegood({ store: createMemoryStore(), topics: [mail, other], recovery: false, onEvent });
  return { mg, mail, other, events, seen };
}

async function refusalOf(call: Promise<unknown>) {
  const error = await call.then(
    () => expect.fail("it was not refused"),
    (thrown) => thrown,
  );
  if (!isMakegoodError(error)) throw error;
  return { code: error.code, message: error.message };
}

describe("C6: a pending message", () => {
  it("is cancelled by its id, with who and why; it is never delivered, and its key stays taken", async () => {
    const { mg, mail, events, seen } = await open();
    const { id } = await mg.enqueue(mail, { to: "a" }, { key: "welcome-1", delayMs: HOUR });
    const view = await mg.cancel(id, { actor: "support", reason: "address was wrong" });
    expect(view).toMatchObject({ id, status: "dead", resolution: "discarded", nextAttemptAt: null, revision: 1 });
    expect((await mg.store.history(id)).provenance).toMatchObject([
      { actor: "support", action: "cancel", reason: "address was wrong" },
    ]);
    expect(events).toContainEqual({ type: "intervened", id, action: "cancel", actor: "support", reason: "address was wrong" });
    expect(await mg.enqueue(mail, { to: "a" }, { key: "welcome-1" })).toEqual({ id, inserted: false });
    await mg.workOff();
    expect(seen).toEqual([]);
    await mg.close();
  });

  it("is found by its key, within its topic and tenant", async () => {
    const { mg, mail, other } = await open();
    const fields = { key: "k", delayMs: HOUR };
    const none = await mg.enqueue(mail, { to: "none" }, fields);
    const mine = await mg.enqueue(mail, { to: "mine" }, { ...fields, tenantId: "t1" });
    const theirs = await mg.enqueue(mail, { to: "theirs" }, { ...fields, tenantId: "t2" });
    const elsewhere = await mg.enqueue(other, {}, fields);
    const by = { actor: "shop" };
    expect((await mg.cancel({ topic: mail, key: "k", tenantId: "t1" }, by)).id).toBe(mine.id);
    expect((await mg.cancel({ topic: "mail/send", key: "k" }, by)).id).toBe(none.id);
    for (const { id } of [theirs, elsewhere]) expect((await mg.get(id))?.status).toBe("pending");
    expect(await refusalOf(mg.cancel({ topic: mail, key: "k", tenantId: "t3" }, by))).toEqual({
      code: "message_not_found",
      message: 'there is no message with key "k" of topic mail/send and tenant "t3"',
    });
    expect(await refusalOf(mg.cancel({ topic: mail, key: "k" }, by))).toEqual({
      code: "wrong_state",
      message: `message ${none.id} is dead (discarded): cancel does not apply`,
    });
    await mg.close();
  });

  it("is rescheduled to sooner and to later, under the revision that was seen", async () => {
    const { mg, mail, seen } = await open();
    const { id } = await mg.enqueue(mail, { to: "a" }, { key: "k", delayMs: HOUR });
    const by = { actor: "shop", reason: null };
    const later = await mg.reschedule(id, { ...by, delayMs: 2 * HOUR, revision: 0 });
    expect(later.nextAttemptAt!.getTime() - later.createdAt.getTime()).toBeGreaterThanOrEqual(2 * HOUR);
    expect((await refusalOf(mg.reschedule(id, { ...by, delayMs: 0, revision: 0 }))).code).toBe("revision_conflict");
    await mg.workOff();
    expect(seen).toEqual([]);
    await mg.reschedule({ topic: mail, key: "k" }, { ...by, delayMs: 0 });
    await mg.workOff();
    expect(seen).toEqual([{ to: "a" }]);
    expect((await refusalOf(mg.reschedule(id, { ...by, delayMs: 0 }))).message).toContain(
      "is delivered: reschedule does not apply",
    );
    await mg.close();
  });

  it("is not rescheduled by what is no delay, nor while it is held", async () => {
    const unsure = topic("mail/unsure", { sink: () => ({ kind: "unknown", code: "timeout", error: "?" }), onUnknown: "hold" });
    const mg = await createMakegood({ store: createMemoryStore(), topics: [unsure], recovery: false });
    const { id } = await mg.enqueue(unsure, {});
    for (const delayMs of [-1, Number.NaN, undefined as unknown as number, "1" as unknown as number]) {
      expect((await refusalOf(mg.reschedule(id, { actor: "shop", delayMs }))).code).toBe("invalid_message");
    }
    await mg.workOff();
    expect((await mg.get(id))?.heldReason).not.toBeNull();
    expect((await refusalOf(mg.reschedule(id, { actor: "shop", delayMs: 0 }))).message).toBe(
      `message ${id} is held until a person replays, resolves or discards it: reschedule does not apply`,
    );
    await mg.cancel(id, { actor: "shop" });
    await mg.close();
  });
});

describe("C6: what there is, and whether it goes on", () => {
  it("lists pages with why each message waits, by the topic itself or its name", async () => {
    const { mg, mail, other } = await open();
    for (let n = 0; n < 60; n++) await mg.enqueue(mail, { to: `${n}` }, { delayMs: HOUR });
    await mg.enqueue(other, {});
    const first = await mg.list({ topic: mail });
    expect(first.data).toHaveLength(50);
    expect(first.data[0]).toMatchObject({ topic: "mail/send", payload: '{"to":"59"}', pendingReason: { code: "no_worker" } });
    const second = await mg.list({ topic: "mail/send", cursor: first.nextCursor ?? "" });
    expect([second.data.length, second.nextCursor]).toEqual([10, null]);
    expect((await mg.list({ topic: other, payload: false, limit: 1 })).data).toMatchObject([{ payload: "" }]);
    expect((await mg.list()).data[0]?.topic).toBe("mail/other");
    expect((await refusalOf(mg.list({ limit: 0 }))).code).toBe("invalid_message");
    await mg.close();
  });

  it("pauses and resumes a topic for every worker, and says so", async () => {
    const { mg, mail, events, seen } = await open();
    expect(await mg.pause(mail)).toMatchObject({ name: "mail/send", paused: true });
    const { id } = await mg.enqueue(mail, { to: "a" });
    await mg.workOff();
    expect(seen).toEqual([]);
    expect(await mg.get(id)).toMatchObject({ status: "pending", heldReason: "topic_paused" });
    expect(await mg.resume("mail/send")).toMatchObject({ paused: false });
    await mg.workOff();
    expect(seen).toEqual([{ to: "a" }]);
    const said = events.flatMap((event) => (event.type === "lifecycle" ? [event] : []));
    expect(said.filter(({ detail }) => detail?.topic === "mail/send").map(({ what }) => what)).toEqual([
      "topic_paused",
      "topic_resumed",
    ]);
    expect((await refusalOf(mg.pause("mail/nope"))).code).toBe("topic_not_found");
    await mg.close();
  });
});
