/**
 * The stage of one case: a fresh store with four topics, messages to enqueue, and claims and settles in short words. Time is
 * the case's own: every call carries a `now` counted in milliseconds from the scene's start, and it only moves forward.
 */
import assert from "node:assert/strict";
import type { ClaimedMessage, NewMessage } from "../../message/message.ts";
import type { Settlement } from "../../message/settlement.ts";
import { type Clock, sleep, systemClock } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import type { At, Lane, SettleResult, Store } from "../../store/store.ts";
import { newMessage, TOPICS } from "./fixtures.ts";
import type { StoreHarness } from "./harness.ts";

export interface ClaimOptions {
  readonly store?: Store;
  readonly owner?: string;
  readonly leaseMs?: number;
  readonly limit?: number;
  readonly bytesMax?: number;
  /** Which lanes to name; absent: all that the store lists. */
  readonly lanes?: (lane: Lane) => boolean;
}

export interface Scene {
  readonly harness: StoreHarness;
  readonly store: Store;
  /** `count` ways to the same data, alternating between two instances where the store allows it. */
  instances(count: number): Promise<Store[]>;
  /** Closes the store as a crash would; what comes back is the same data opened again. */
  reopen(): Promise<Store>;
  at(ms: number): { readonly now: Date };
  id(): string;
  message(fields?: Partial<NewMessage>): NewMessage;
  /** Enqueues one message for each, at `ms`, and returns their ids. */
  accept(ms: number, ...fields: Partial<NewMessage>[]): Promise<string[]>;
  /** One claim over all lanes. */
  claim(ms: number, options?: ClaimOptions): Promise<ClaimedMessage[]>;
  /** Claims until there are `count`, and they must come. */
  take(count: number, ms: number, options?: ClaimOptions): Promise<ClaimedMessage[]>;
  takeOne(ms: number, options?: ClaimOptions): Promise<ClaimedMessage>;
  /** Nothing may be claimed. */
  nothing(ms: number, options?: ClaimOptions): Promise<void>;
  settle(ms: number, messages: readonly ClaimedMessage[], settlement: Settlement, store?: Store): Promise<SettleResult[]>;
  /** Settles, and every settle must count. */
  settled(ms: number, messages: readonly ClaimedMessage[], settlement: Settlement): Promise<void>;
}

/** Plays one case on a fresh store and closes every instance afterwards. */
export async function play(harness: StoreHarness, run: (scene: Scene) => Promise<void>): Promise<void> {
  const store = await harness.open();
  const opened = new Set([store]);
  try {
    for (const topic of TOPICS) assert.notEqual(await store.topics.put(topic, "code"), "read_only");
    await run({ ...stores(harness, store, opened), ...verbs(store) });
  } finally {
    for (const each of [...opened].reverse()) await each.close();
  }
}

function stores(
  harness: StoreHarness,
  store: Store,
  opened: Set<Store>,
): Pick<Scene, "harness" | "store" | "instances" | "reopen"> {
  return {
    harness,
    store,
    async instances(count) {
      const second = (await harness.another?.(store)) ?? store;
      opened.add(second);
      return Array.from({ length: count }, (_, i) => (i % 2 === 0 ? store : second));
    },
    async reopen() {
      assert.ok(harness.reopen, "a store that survives something needs harness.reopen");
      opened.delete(store);
      const again = await harness.reopen(store);
      opened.add(again);
      return again;
    },
  };
}

/** The part of a scene that needs nothing but a store; other suites build on it. */
export function verbs(store: Store, clock: Clock = systemClock): Omit<Scene, "harness" | "store" | "instances" | "reopen"> {
  const start = clock.wallMs();
  const at = (ms: number) => ({ now: new Date(start + ms) });
  const id = createIds(clock);
  const message = (fields?: Partial<NewMessage>) => newMessage(id(), fields);
  const claim = (ms: number, options: ClaimOptions = {}) => claimOnce(options.store ?? store, at(ms), options);
  const settle: Scene["settle"] = (ms, messages, settlement, by = store) => by.settle(settles(messages, settlement), at(ms));
  const take = async (count: number, ms: number, options: ClaimOptions = {}) => {
    const taken: ClaimedMessage[] = [];
    // Again for a moment when it comes up short: a store may look past a late row once, but never for good.
    for (let tries = 0; taken.length < count && tries < 60; tries++) {
      const limit = Math.min(options.limit ?? 1_000, count - taken.length);
      const more = await claim(ms, { ...options, limit });
      if (more.length === 0) await sleep(systemClock, 50);
      taken.push(...more);
    }
    assert.equal(taken.length, count, `${count} messages should be claimable`);
    return taken;
  };
  return {
    at,
    id,
    message,
    claim,
    take,
    settle,
    async accept(ms, ...fields) {
      const messages = (fields.length === 0 ? [{}] : fields).map(message);
      const results = await store.enqueue(messages, at(ms));
      assert.deepEqual(
        results,
        messages.map((each) => ({ kind: "accepted", id: each.id })),
      );
      return messages.map((each) => each.id);
    },
    takeOne: async (ms, options) => (await take(1, ms, options))[0] as ClaimedMessage,
    async nothing(ms, options) {
      const taken = await claim(ms, options);
      assert.deepEqual(taken, [], "nothing should be claimable");
    },
    async settled(ms, messages, settlement) {
      const results = await settle(ms, messages, settlement);
      assert.deepEqual(results, Array<SettleResult>(messages.length).fill("settled"));
    },
  };
}

async function claimOnce(store: Store, at: At, options: ClaimOptions): Promise<ClaimedMessage[]> {
  const listed = await store.lanes(at);
  const lanes = listed.filter(options.lanes ?? (() => true)).map(({ lane }) => ({ lane, limit: options.limit ?? 1_000 }));
  const { owner = "worker", leaseMs = 30_000, bytesMax } = options;
  return store.claim({ owner, leaseMs, lanes, bytesMax, ...at });
}

/** The same settlement for each of these, under the claims they carry. */
export function settles(messages: readonly ClaimedMessage[], settlement: Settlement) {
  return messages.map(({ id, claim, attempt }) => ({ id, claim, attempt, durationMs: 5, settlement }));
}
