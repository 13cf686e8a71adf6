/**
 * Leadership: one holder of a name at a time, a term that rises with each change of holder. It saves work and never provides
 * safety (I9).
 */
import assert from "node:assert/strict";
import { SECOND } from "./fixtures.js";
const TTL = 10 * SECOND;
export const leadershipCases = {
    "one leads, the other is told who": async (scene) => {
        const first = await scene.store.lead("upkeep", "a", TTL, scene.at(0));
        assert.deepEqual([first.held, first.owner], [true, "a"]);
        const second = await scene.store.lead("upkeep", "b", TTL, scene.at(SECOND));
        assert.deepEqual(second, { held: false, owner: "a", term: first.term });
    },
    "renewal keeps the term and pushes the end out": async (scene) => {
        const first = await scene.store.lead("upkeep", "a", TTL, scene.at(0));
        assert.deepEqual(await scene.store.lead("upkeep", "a", TTL, scene.at(8 * SECOND)), first);
        assert.equal((await scene.store.lead("upkeep", "b", TTL, scene.at(15 * SECOND))).held, false);
    },
    "when it runs out another takes over, with a higher term, and the first is told": async (scene) => {
        const first = await scene.store.lead("upkeep", "a", TTL, scene.at(0));
        const second = await scene.store.lead("upkeep", "b", TTL, scene.at(11 * SECOND));
        assert.deepEqual([second.held, second.owner], [true, "b"]);
        assert.ok(BigInt(second.term) > BigInt(first.term));
        const late = await scene.store.lead("upkeep", "a", TTL, scene.at(12 * SECOND));
        assert.deepEqual(late, { held: false, owner: "b", term: second.term });
    },
    "giving up lets another in at once; only the holder can": async (scene) => {
        const first = await scene.store.lead("upkeep", "a", TTL, scene.at(0));
        assert.equal((await scene.store.lead("upkeep", "b", 0, scene.at(1))).held, false);
        assert.equal((await scene.store.lead("upkeep", "b", TTL, scene.at(2))).held, false, "b could not end what a holds");
        assert.equal((await scene.store.lead("upkeep", "a", 0, scene.at(3))).held, false);
        const second = await scene.store.lead("upkeep", "b", TTL, scene.at(4));
        assert.equal(second.held, true);
        assert.ok(BigInt(second.term) > BigInt(first.term));
    },
    "giving up what nobody holds is no error": async (scene) => {
        assert.equal((await scene.store.lead("upkeep", "a", 0, scene.at(0))).held, false);
        assert.equal((await scene.store.lead("upkeep", "b", TTL, scene.at(1))).held, true);
    },
    "names are independent": async (scene) => {
        assert.equal((await scene.store.lead("upkeep", "a", TTL, scene.at(0))).held, true);
        assert.equal((await scene.store.lead("recovery", "b", TTL, scene.at(0))).held, true);
    },
    "many at once: exactly one leads, at the start and at each change": async (scene) => {
        const instances = await scene.instances(10);
        let term = -1n;
        for (const ms of [0, 11 * SECOND, 22 * SECOND]) {
            const contest = instances.map((store, i) => store.lead("upkeep", `${ms}-${i}`, TTL, scene.at(ms)));
            const results = await Promise.all(contest);
            const leaders = results.filter(({ held }) => held);
            assert.equal(leaders.length, 1);
            assert.ok(BigInt(leaders[0].term) > term);
            term = BigInt(leaders[0].term);
        }
    },
};
//# sourceMappingURL=leadership.js.map