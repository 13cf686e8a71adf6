/**
 * Order on PostgreSQL while everything happens at once (N16, N17): callers' transactions that stay open, workers that fail, people who
 * discard and replay. Nothing is left behind that nobody would ever show, and no key is out of order.
 */
import { describe, expect, it } from "vitest";
import type { ClaimedMessage } from "../../src/message/message.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import { createIds } from "../../src/platform/ids.ts";
import type { Store } from "../../src/store/store.ts";
import {
  chance,
  DELIVERED,
  dead,
  definition,
  hold,
  newMessage,
  RELEASE,
  retry,
  STRICT,
  sorted,
} from "../../src/testing/store-conformance/fixtures.ts";
import { settles } from "../../src/testing/store-conformance/scene.ts";
import { beginTransaction, dropSchema, openStore, withClient } from "../support/postgres.ts";

const KEYS = 6;
const PRODUCERS = 5;
const EACH = 30;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const nextId = createIds();
const claimSome = async (store: Store): Promise<ClaimedMessage[]> => {
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 3 }));
  return store.claim({ owner: "worker", leaseMs: 60_000, lanes });
};

/** On a busy machine the loops may end before the last replay of the other: what can be claimed is, for as long as there is any. */
async function finish(store: Store, delivered: (one: ClaimedMessage) => void): Promise<void> {
  for (let idle = 0; idle < 20; ) {
    const dead = (await store.list({ status: "dead", resolution: "open", limit: 100 })).data;
    const pending = (await store.list({ status: "pending", limit: 100 })).data;
    for (const { id } of [...dead, ...pending.filter(({ heldReason }) => heldReason !== null)])
      await store.intervene({ id, action: "replay", actor: "p", reason: null });
    const batch = await claimSome(store);
    for (const one of batch) delivered(one);
    if (batch.length > 0) await store.settle(settles(batch, DELIVERED));
    idle = batch.length + dead.length === 0 ? idle + 1 : 0;
    await wait(10);
  }
}

describe("order under contention", () => {
  it("open transactions, failing workers, discards and replays: nothing stays behind, nothing overtakes", async () => {
    const stores = [await openStore()];
    stores.push(await openStore({ schema: stores[0]!.schema }));
    for (const topic of [definition(STRICT, "strict")]) await stores[0]!.topics.put(topic, "code");
    const came = new Map<string, number[]>();
    const removed = new Set<string>();
    let producing = PRODUCERS;

    /** Numbers rise within a producer and key, and each is committed before the next is sent. */
    const produce = async (producer: number, store: Store) => {
      for (let n = 0; n < EACH; n++) {
        const fields = { topic: STRICT, orderingKey: `k${n % KEYS}`, payload: JSON.stringify({ producer, n }) };
        const size = chance(0.3) ? 3 : 1;
        const messages = Array.from({ length: size }, () => newMessage(nextId(), fields));
        const { tx, commit, rollback } = await beginTransaction();
        await store.enqueue(messages, { tx });
        if (chance(0.5)) await wait(Math.random() * 20);
        await (chance(0.9) ? commit() : rollback());
      }
      producing--;
    };
    const settlement = (): Settlement =>
      chance(0.6)
        ? DELIVERED
        : chance(0.3)
          ? retry(chance(0.5) ? 0 : 20)
          : chance(0.3)
            ? RELEASE
            : chance(0.5)
              ? dead(true)
              : hold();
    const delivered = ({ orderingKey, payload }: ClaimedMessage) => {
      const { producer, n } = JSON.parse(payload) as { producer: number; n: number };
      const name = `${orderingKey} ${producer}`;
      came.set(name, [...(came.get(name) ?? []), n]);
    };
    const work = async (store: Store) => {
      for (let idle = 0; producing > 0 || idle < 30; ) {
        const batch = await claimSome(store);
        idle = batch.length === 0 ? idle + 1 : 0;
        if (batch.length === 0) await wait(10);
        for (const one of batch) {
          const how = settlement();
          if (how === DELIVERED) delivered(one);
          expect(await store.settle(settles([one], how))).toEqual(["settled"]);
        }
      }
    };
    /** A person decides about everything that is dead or held, and throws some of what waits away, neighbours at the same moment. */
    const intervene = async (store: Store) => {
      for (let idle = 0; producing > 0 || idle < 30; ) {
        const dead = (await store.list({ status: "dead", resolution: "open", limit: 20 })).data;
        const pending = (await store.list({ status: "pending", limit: 50 })).data;
        const held = pending.filter(({ heldReason }) => heldReason !== null);
        idle = dead.length + held.length === 0 ? idle + 1 : 0;
        const discards = producing > 0 && chance(0.5) ? pending.slice(-4) : [];
        await Promise.all([
          ...[...dead, ...held].map(({ id }) =>
            store.intervene({ id, action: chance(0.8) ? "replay" : "resolve", actor: "p", reason: null }),
          ),
          ...discards.map(async ({ id }) => {
            if ((await store.intervene({ id, action: "discard", actor: "p", reason: null })).kind === "done") removed.add(id);
          }),
        ]);
        await wait(15);
      }
    };
    await Promise.all([
      ...Array.from({ length: PRODUCERS }, (_, i) => produce(i, stores[i % 2]!)),
      ...Array.from({ length: 3 }, (_, i) => work(stores[i % 2]!)),
      intervene(stores[0]!),
    ]);

    await finish(stores[0]!, delivered);
    const { schema } = stores[0]!;
    const left = await withClient((client) => client.query(`select ordering_key, behind, due from "${schema}".ready_ordered`));
    expect(left.rows).toEqual([]);
    expect(await stores[0]!.lanes()).toEqual([]);
    expect(removed.size).toBeGreaterThan(0);
    for (const [name, numbers] of came) expect(numbers, name).toEqual([...numbers].sort((a, b) => a - b));
    for (const store of stores) await store.close();
    await dropSchema(schema);
  }, 120_000);

  it("what is being taken away at this moment is nothing to wait behind", async () => {
    const store = await openStore();
    await store.topics.put(definition(STRICT, "strict"), "code");
    const send = async (orderingKey: string, delayMs = 0) => {
      const message = newMessage(nextId(), { topic: STRICT, orderingKey, delayMs });
      await store.enqueue([message]);
      return message.id;
    };
    // A key in flight and one that waits for a delayed head, each with one behind it that no claim has seen so far.
    await send("flying");
    expect(await claimSome(store)).toHaveLength(1);
    const delayed = await send("delayed", 3_600_000);
    const behind = [await send("flying"), await send("delayed")];
    const { tx, commit } = await beginTransaction();
    await tx.query(`delete from "${store.schema}".order_lock`);
    await tx.query(`delete from "${store.schema}".ready_ordered where id = $1`, [delayed]);
    expect(await claimSome(store)).toEqual([]);
    await commit();
    expect(sorted((await claimSome(store)).map(({ id }) => id))).toEqual(sorted(behind));
    await store.close();
    await dropSchema(store.schema);
  });

  it("a head that another hand left behind is shown with the next upkeep, and by the next message of its key", async () => {
    const store = await openStore();
    await store.topics.put(definition(STRICT, "strict"), "code");
    const ids = Array.from({ length: 3 }, nextId);
    const keys = ["a", "b", "b"];
    await store.enqueue(ids.slice(0, 2).map((id, i) => newMessage(id, { topic: STRICT, orderingKey: keys[i]! })));
    await withClient((client) => client.query(`update "${store.schema}".ready_ordered set behind = true`));
    expect(await claimSome(store)).toEqual([]);
    await store.enqueue([newMessage(ids[2]!, { topic: STRICT, orderingKey: "b" })]);
    await claimSome(store).then((batch) => expect(batch.map(({ id }) => id)).toEqual([ids[1]]));
    await store.prune({ keptMs: 1_000_000, limit: 10 });
    expect((await claimSome(store)).map(({ id }) => id)).toEqual([ids[0]]);
    await store.close();
    await dropSchema(store.schema);
  });

  it("a suspect that is held stays a suspect in its row, as in the other stores", async () => {
    const store = await openStore();
    await store.topics.put(definition(STRICT, "strict"), "code");
    const id = nextId();
    await store.enqueue([newMessage(id, { topic: STRICT, orderingKey: "k" })]);
    await store.settle(settles(await claimSome(store), retry(0, false, 1)));
    const [suspect] = await claimSome(store);
    expect(suspect?.suspicion).toBe(1);
    await store.settle(settles([suspect as ClaimedMessage], hold()));
    const read = () => withClient((client) => client.query(`select suspicion from "${store.schema}".ready_ordered`));
    expect((await read()).rows).toEqual([{ suspicion: 1 }]);
    // A person decides: it begins anew.
    await store.intervene({ id, action: "replay", actor: "a person", reason: null });
    expect((await claimSome(store))[0]?.suspicion).toBe(0);
    await store.close();
    await dropSchema(store.schema);
  });
});
