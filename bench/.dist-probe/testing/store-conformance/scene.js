/**
 * The stage of one case: a fresh store with four topics, messages to enqueue, and claims and settles in short words. Time is
 * the case's own: every call carries a `now` counted in milliseconds from the scene's start, and it only moves forward.
 */
import assert from "node:assert/strict";
import { sleep, systemClock } from "../../platform/clock.js";
import { createIds } from "../../platform/ids.js";
import { newMessage, TOPICS } from "./fixtures.js";
/** Plays one case on a fresh store and closes every instance afterwards. */
export async function play(harness, run) {
    const store = await harness.open();
    const opened = new Set([store]);
    try {
        for (const topic of TOPICS)
            assert.notEqual(await store.topics.put(topic, "code"), "read_only");
        await run({ ...stores(harness, store, opened), ...verbs(store) });
    }
    finally {
        for (const each of [...opened].reverse())
            await each.close();
    }
}
function stores(harness, store, opened) {
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
function verbs(store) {
    const start = systemClock.wallMs();
    const at = (ms) => ({ now: new Date(start + ms) });
    const id = createIds();
    const message = (fields) => newMessage(id(), fields);
    const claim = (ms, options = {}) => claimOnce(options.store ?? store, at(ms), options);
    const settle = (ms, messages, settlement, by = store) => by.settle(settles(messages, settlement), at(ms));
    const take = async (count, ms, options = {}) => {
        const taken = [];
        // Again for a moment when it comes up short: a store may look past a late row once, but never for good.
        for (let tries = 0; taken.length < count && tries < 60; tries++) {
            const limit = Math.min(options.limit ?? 1_000, count - taken.length);
            const more = await claim(ms, { ...options, limit });
            if (more.length === 0)
                await sleep(systemClock, 50);
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
            assert.deepEqual(results, messages.map((each) => ({ kind: "accepted", id: each.id })));
            return messages.map((each) => each.id);
        },
        takeOne: async (ms, options) => (await take(1, ms, options))[0],
        async nothing(ms, options) {
            const taken = await claim(ms, options);
            assert.deepEqual(taken, [], "nothing should be claimable");
        },
        async settled(ms, messages, settlement) {
            const results = await settle(ms, messages, settlement);
            assert.deepEqual(results, Array(messages.length).fill("settled"));
        },
    };
}
async function claimOnce(store, at, options) {
    const listed = await store.lanes(at);
    const lanes = listed.filter(options.lanes ?? (() => true)).map(({ lane }) => ({ lane, limit: options.limit ?? 1_000 }));
    const { owner = "worker", leaseMs = 30_000, bytesMax } = options;
    return store.claim({ owner, leaseMs, lanes, bytesMax, ...at });
}
/** The same settlement for each of these, under the claims they carry. */
export function settles(messages, settlement) {
    return messages.map(({ id, claim, attempt }) => ({ id, claim, attempt, durationMs: 5, settlement }));
}
//# sourceMappingURL=scene.js.map