/**
 * Ordering under contention (DO-10): many workers over several instances, attempts that fail at random: still
 * no key ever has two messages in flight or passes one over.
 */
import assert from "node:assert/strict";
import { sleep, systemClock } from "../../platform/clock.js";
import { chance, countOf, DELIVERED, KEYED, RELEASE, retry, STRICT } from "./fixtures.js";
import { settles } from "./scene.js";
const KEYS = 20;
const EACH = 10;
function started({ inFlight, next }, { orderingKey, payload }) {
    const key = orderingKey ?? "";
    assert.ok(!inFlight.has(key), `two messages of ${key} in flight`);
    inFlight.add(key);
    assert.equal(Number(payload), next.get(key) ?? 0, `${key} out of order`);
}
function ended(watch, { orderingKey, payload }, delivered) {
    watch.inFlight.delete(orderingKey ?? "");
    if (!delivered)
        return;
    watch.next.set(orderingKey ?? "", Number(payload) + 1);
    watch.delivered++;
}
async function work(scene, store, watch, topic) {
    let idle = 0;
    while (watch.delivered < KEYS * EACH) {
        const lanes = (await store.lanes(scene.at(1))).filter((lane) => lane.topic === topic);
        const request = { owner: "worker", leaseMs: 30_000, lanes: lanes.map(({ lane }) => ({ lane, limit: 4 })) };
        const batch = await store.claim({ ...request, ...scene.at(1) });
        for (const message of batch)
            started(watch, message);
        for (const message of batch) {
            const settlement = chance(0.7) ? DELIVERED : chance(0.5) ? retry(0) : RELEASE;
            // Noted before the settle: from then on another worker may rightly claim the next one.
            ended(watch, message, settlement === DELIVERED);
            assert.deepEqual(await store.settle(settles([message], settlement), scene.at(1)), ["settled"]);
        }
        if (batch.length === 0) {
            assert.ok(++idle < 10_000, "messages are left that nobody may claim");
            await sleep(systemClock, 1);
        }
    }
}
async function contend(scene, topic) {
    const fields = Array.from({ length: KEYS * EACH }, (_, i) => ({
        topic,
        orderingKey: `account-${i % KEYS}`,
        payload: String(Math.floor(i / KEYS)),
    }));
    await scene.accept(0, ...fields);
    const instances = await scene.instances(6);
    const watch = { next: new Map(), inFlight: new Set(), delivered: 0 };
    await Promise.all(instances.map((store) => work(scene, store, watch, topic)));
    assert.equal(await countOf(scene.store, "delivered"), KEYS * EACH);
    assert.ok([...watch.next.values()].every((next) => next === EACH));
}
export const orderingContentionCases = {
    "DO-10: key: 20 keys of 10 messages, six workers, random retries: no overlap, no order broken": (scene) => contend(scene, KEYED),
    "DO-10: strict: 20 keys of 10 messages, six workers, random retries: no overlap, no order broken": (scene) => contend(scene, STRICT),
};
//# sourceMappingURL=ordering-contention.js.map