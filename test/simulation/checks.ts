/**
 * What is looked at after each step, now and then, and at the end of a history: the store beside the ledger, how long what is due has
 * waited, and what the receivers have.
 */
import type { Status } from "../../src/message/message.ts";
import { of } from "./judge.ts";
import type { Entry } from "./ledger.ts";
import { effectName } from "./receiver.ts";
import type { Stage } from "./stage.ts";
import type { World } from "./world.ts";

/**
 * I11, in virtual time. After a storm it takes as long as the longest rest of a process that could not deliver a topic (30 s), or a lease (8 s),
 * a takeover that nobody heard of (10 s) and the rest of a store that failed (5 s). From then on what never failed has its attempt within a
 * few polls; what failed before may have to wait for its turn behind a breaker that bad messages keep open.
 */
export const SETTLING_MS = 35_000;
export const FRESH_WITHIN_MS = 5_000;
export const FAILED_WITHIN_MS = 240_000;

/** Everything that changed in the last step is in the store as the ledger has it. */
export async function checkTouched(world: World, { ledger, inner, gone }: Stage): Promise<void> {
  for (const id of ledger.touched) {
    const entry = ledger.entries.get(id);
    if (entry) await checkEntry(world, entry, inner);
  }
  ledger.touched.clear();
  for (const { message } of gone.splice(0)) {
    if (ledger.entries.has(message.id)) continue;
    if ((await inner.get(message.id)) !== null) world.violated("I2", `${message.id} is past its time, was counted, and is there`);
  }
}

async function checkEntry(world: World, entry: Entry, inner: Stage["inner"]): Promise<void> {
  const { message, status, attempts, generation, revision, resolution, heldReason } = entry;
  const view = await inner.get(message.id);
  if (!view) return world.violated("I2", `${of(entry)} vanished`);
  const due = status === "pending" && heldReason === null ? entry.dueMs : undefined;
  const found = [
    view.status,
    view.attempts,
    view.generation,
    view.revision,
    view.resolution,
    view.heldReason,
    view.dueAt?.getTime(),
  ];
  const expected = [status, attempts, generation, revision, resolution, heldReason, due];
  if (JSON.stringify(found) !== JSON.stringify(expected))
    world.violated("I5", `${of(entry)} is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
  if (view.payload !== message.payload) world.violated("I8", `${of(entry)} has other bytes`);
  if (view.key !== message.key) world.violated("I7", `${of(entry)} has another key`);
  const history = await inner.history(message.id);
  if (history.attempts.length !== entry.rows)
    world.violated("I5", `${of(entry)} has ${history.attempts.length} attempt rows, not ${entry.rows}`);
  if (history.provenance.length !== entry.provenance) world.violated("I5", `${of(entry)} lost what people did to it`);
}

/** I12 and I2: accepted = pending + processing + delivered + dead + pruned, by topic, as the store counts them. */
export async function checkAll(world: World, { ledger, inner }: Stage): Promise<void> {
  const expected = new Map<string, number>();
  const name = (topic: string, status: Status): string => `${topic} ${status}`;
  for (const { message, status } of ledger.entries.values()) {
    const key = name(message.topic, status);
    expected.set(key, (expected.get(key) ?? 0) + 1);
  }
  for (const { topic, status, count } of await inner.counts({ delivered: true })) {
    const key = name(topic, status);
    expected.set(key, (expected.get(key) ?? 0) - count);
  }
  const wrong = [...expected].filter(([, count]) => count !== 0);
  if (wrong.length > 0)
    world.violated("I12", `accepted and there differ: ${wrong.map(([what, by]) => `${what} by ${by}`).join(", ")}`);
  if (ledger.accepted !== ledger.entries.size + ledger.pruned) world.violated("I12", "the ledger does not add up");
}

/** I11: what is due is attempted within its time. Returns how long the first of each kind has waited. */
export function checkWaiting(world: World, stage: Stage): { readonly freshMs: number; readonly failedMs: number } {
  const longest = { freshMs: 0, failedMs: 0 };
  const { calmSinceMs, ledger } = stage;
  if (calmSinceMs === null) return longest;
  for (const entry of ledger.pending) {
    const topic = ledger.topics.get(entry.message.topic);
    if (!topic || topic.paused || topic.disabled || !ledger.isClaimable(entry, world.nowMs)) continue;
    const keySinceMs = entry.ordered ? ledger.keyOf(entry).changedMs : 0;
    const waitedMs =
      world.nowMs - Math.max(entry.dueMs, entry.changedMs, keySinceMs, topic.openSinceMs, calmSinceMs + SETTLING_MS);
    const fresh = !entry.retried && entry.suspicion === 0 && stage.receivers.wouldTake(entry.message.payload);
    const kind = fresh ? "freshMs" : "failedMs";
    longest[kind] = Math.max(longest[kind], waitedMs);
    if (waitedMs > (fresh ? FRESH_WITHIN_MS : FAILED_WITHIN_MS))
      world.violated("I11", `${of(entry)} has been due for ${waitedMs} ms while everything is well`);
  }
  return longest;
}

/** Whatever was accepted by then is settled or dead, or stays as it is for a reason. */
export function isOver({ ledger }: Stage, place = Number.POSITIVE_INFINITY): boolean {
  for (const entry of ledger.pending) {
    if (entry.place > place || entry.heldReason !== null) continue;
    const topic = ledger.topics.get(entry.message.topic);
    const key = entry.ordered ? ledger.keyOf(entry) : null;
    const waits = key !== null && (key.blockedBy !== null || (key.waiting[0]?.heldReason ?? null) !== null);
    if (!topic?.paused && !topic?.disabled && !waits) return false;
  }
  for (const { open } of ledger.leases.values())
    for (const id of open) if ((ledger.entries.get(id)?.place ?? 0) <= place) return false;
  return true;
}

/** Nothing goes on any more. */
export function isQuiet(stage: Stage): boolean {
  if (!isOver(stage)) return false;
  return stage.slots.every(({ makegood, worker }) => {
    if (!makegood) return false;
    const status = worker?.status();
    return (!status || status.running + status.waiting + status.unsettled === 0) && makegood.ladder.status().waiting.memory === 0;
  });
}

/** At the end: conservation, order, and one effect for each key. */
export async function checkEnd(world: World, stage: Stage): Promise<void> {
  const { ledger, receivers, inner } = stage;
  await checkAll(world, stage);
  let seen = 0;
  for (let cursor: string | undefined; ; ) {
    const page = await inner.list({ limit: 500, cursor });
    for (const { id } of page.data) if (!ledger.entries.has(id)) world.violated("I12", `${id} is there and was never accepted`);
    seen += page.data.length;
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  if (seen !== ledger.entries.size) world.violated("I12", `${seen} can be listed, ${ledger.entries.size} are there`);
  for (const entry of ledger.entries.values()) {
    await checkEntry(world, entry, inner);
    const { id, topic, tenantId, key } = entry.message;
    if (entry.status === "delivered" && !receivers.effects.has(effectName(topic, tenantId, key ?? id)))
      world.violated("one effect", `${of(entry)} is delivered and its receiver has nothing of it`);
  }
  checkOrder(world, stage);
}

function checkOrder(world: World, { ledger, receivers }: Stage): void {
  const before = new Map<string, { place: number; atMs: number; id: string }>();
  for (const { orderKey, place, message } of [...ledger.inOrder].sort((a, b) => a.place - b.place)) {
    const effect = receivers.effects.get(effectName(message.topic, message.tenantId, message.id));
    const last = before.get(orderKey);
    if (!effect) continue;
    if (last && effect.atMs < last.atMs)
      world.violated("order", `${message.id} took effect before ${last.id}, which was accepted first, in ${orderKey}`);
    before.set(orderKey, { place, atMs: effect.atMs, id: message.id });
  }
}
