/**
 * What is looked at after each step, now and then, and at the end of a history: the store beside the ledger, how long what is due has
 * waited, and what the receivers have.
 */
import type { Status } from "../../src/message/message.ts";
import type { ListFilter } from "../../src/store/store.ts";
import { of } from "./judge.ts";
import { type Entry, scopeOf } from "./ledger.ts";
import { effectName } from "./receiver.ts";
import type { Stage } from "./stage.ts";
import type { World } from "./world.ts";

/**
 * I11, in virtual time, once the storm has settled. What never failed has its attempt within a few polls; what failed before may have to wait
 * for its turn behind a breaker that bad messages keep open.
 */
export const FRESH_WITHIN_MS = 5_000;
export const FAILED_WITHIN_MS = 240_000;
/** A receiver that was away is found to be back by a few probes. */
const FOUND_BACK_MS = 10_000;
/** An attempt, its wait for a place and its settling: nothing is in flight for longer while everything is well. */
const IN_FLIGHT_MS = 15_000;
/** How much later than its time the leader may let go of something. */
const PRUNED_WITHIN_MS = 90_000;
const PAGE = 61;

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
    view.nextAttemptAt?.getTime(),
    view.diedAt?.getTime() ?? null,
    view.lastError,
  ];
  const { diedMs, lastError } = entry;
  const expected = [status, attempts, generation, revision, resolution, heldReason, due, diedMs, lastError];
  if (JSON.stringify(found) !== JSON.stringify(expected))
    world.violated("I5", `${of(entry)} is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
  if (view.payload !== message.payload) world.violated("I8", `${of(entry)} has other bytes`);
  if (view.key !== message.key) world.violated("I7", `${of(entry)} has another key`);
  const history = await inner.history(message.id);
  if (history.attempts.length !== entry.rows)
    world.violated("I5", `${of(entry)} has ${history.attempts.length} attempt rows, not ${entry.rows}`);
  const row = history.attempts.at(-1);
  const { attempt, outcome, counted, code, error, at } = row ?? {};
  const last = row ? { attempt, outcome, counted, code, error, atMs: at?.getTime() } : null;
  if (JSON.stringify(last) !== JSON.stringify(entry.lastRow))
    world.violated("I5", `the last attempt of ${of(entry)} is ${JSON.stringify(last)}, not ${JSON.stringify(entry.lastRow)}`);
  const acts = history.provenance;
  const { actor, action, reason } = acts.at(-1) ?? {};
  const act = acts.length > 0 ? { actor, action, reason } : null;
  if (acts.length !== entry.provenance || JSON.stringify(act) !== JSON.stringify(entry.lastAct))
    world.violated("I5", `${of(entry)} lost what people did to it`);
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
  const { settledSinceMs, ledger, receivers } = stage;
  if (settledSinceMs === null) return longest;
  checkHeld(world, stage, settledSinceMs);
  for (const entry of ledger.pending) {
    const topic = ledger.topics.get(entry.message.topic);
    const backMs = receivers.backMs(entry.message.topic) + FOUND_BACK_MS;
    if (!topic || topic.paused || topic.disabled || !ledger.isClaimable(entry, world.nowMs)) continue;
    const keySinceMs = entry.ordered ? ledger.keyOf(entry).changedMs : 0;
    const sinceMs = Math.max(entry.dueMs, entry.changedMs, keySinceMs, topic.openSinceMs, settledSinceMs, backMs);
    const waitedMs = world.nowMs - sinceMs;
    const fresh = !entry.retried && entry.suspicion === 0 && stage.receivers.wouldTake(entry.message.payload);
    const kind = fresh ? "freshMs" : "failedMs";
    longest[kind] = Math.max(longest[kind], waitedMs);
    if (waitedMs > (fresh ? FRESH_WITHIN_MS : FAILED_WITHIN_MS))
      world.violated("I11", `${of(entry)} has been due for ${waitedMs} ms while everything is well`);
  }
  return longest;
}

/** Nothing is in flight for ever, and retention does its work (I10, I11). */
function checkHeld(world: World, { ledger, keptMs }: Stage, settledSinceMs: number): void {
  for (const [id, { sinceMs, open, by }] of ledger.leases) {
    const heldMs = world.nowMs - Math.max(sinceMs, settledSinceMs);
    if (heldMs > IN_FLIGHT_MS)
      world.violated("I11", `lease ${id} of ${by} holds ${open.size} for ${heldMs} ms while everything is well`);
  }
  const [oldest] = ledger.settled;
  const lateMs = oldest ? world.nowMs - Math.max(oldest.atMs + keptMs, settledSinceMs) : 0;
  if (lateMs > PRUNED_WITHIN_MS)
    world.violated("I10", `${oldest?.entry.message.id} is past its time for ${lateMs} ms and is there`);
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
  if (!isOver(stage) || !stage.rungs.isEmpty) return false;
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
  await checkLists(world, stage);
  await checkBreakers(world, stage);
  for (const { process, rung, id, topic, tenantId, key } of stage.rungs.kept)
    if (
      (rung !== "memory" || process.alive) &&
      !ledger.knew(id, scopeOf({ topic, tenantId, key })) &&
      !receivers.took(topic, tenantId, key)
    )
      world.violated("I1", `${id} was kept by ${rung} of ${process.name} and is neither there nor delivered`);
  for (const entry of ledger.entries.values()) {
    await checkEntry(world, entry, inner);
    const { id, topic, tenantId, key } = entry.message;
    if (entry.status === "delivered" && !receivers.effects.has(effectName(topic, tenantId, key ?? id)))
      world.violated("one effect", `${of(entry)} is delivered and its receiver has nothing of it`);
  }
  checkOrder(world, stage);
}

/** All that is there can be listed, whole or by topic, tenant and state, and nothing else can. */
async function checkLists(world: World, { ledger, inner }: Stage): Promise<void> {
  const expected = new Map<string, Set<string>>();
  const filters = new Map<string, Omit<ListFilter, "limit">>();
  const add = (filter: Omit<ListFilter, "limit">, id: string): void => {
    const name = JSON.stringify(filter);
    filters.set(name, filter);
    expected.set(name, (expected.get(name) ?? new Set()).add(id));
  };
  for (const { message, status, resolution } of ledger.entries.values()) {
    const { id, topic, tenantId, key } = message;
    add({}, id);
    add({ topic, status }, id);
    if (tenantId !== null) add({ tenantId }, id);
    if (resolution !== null) add({ resolution }, id);
    if (key !== null && id.endsWith("7")) add({ key }, id);
  }
  if (ledger.entries.size === 0) filters.set("{}", {});
  for (const [name, filter] of filters) {
    const left = new Set(expected.get(name));
    for (let cursor: string | undefined; ; ) {
      const page = await inner.list({ ...filter, limit: PAGE, cursor });
      for (const { id } of page.data) {
        if (left.delete(id)) continue;
        // A key may be another topic's or another tenant's, too.
        if (filter.key === undefined || ledger.entries.get(id)?.message.key !== filter.key)
          world.violated("I12", `${id} is listed for ${name}, twice or wrongly`);
      }
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    if (left.size > 0) world.violated("I12", `${[...left].join()} is not listed for ${name}`);
  }
}

/** Everybody had a good message last: nothing is held any more. */
async function checkBreakers(world: World, { ledger, inner }: Stage): Promise<void> {
  for (const { name, breaker } of await inner.topics.list()) {
    if (ledger.topics.get(name)?.paused || (breaker.state === "closed" && breaker.tenants.length === 0)) continue;
    const tenants = breaker.tenants.map(({ tenantId }) => tenantId).join();
    world.violated("I11", `${name} ${tenants} is held (${breaker.state}) although all that was sent went through`);
  }
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
