/**
 * What the cases are made of: topics, messages, settlements, and a way to shuffle.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { isMakegoodError } from "../../message/errors.js";
import { systemRandom } from "../../platform/random.js";
export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const DAY = 24 * 60 * MINUTE;
export const PLAIN = "test/plain";
export const OTHER = "other/plain";
export const KEYED = "test/keyed";
export const STRICT = "test/strict";
export function definition(name, ordering = "none") {
    return {
        name,
        sink: { kind: "function" },
        retry: { policy: "exponential", attemptsMax: 3 },
        schemaVersion: null,
        leaseMs: 30_000,
        concurrency: null,
        tenantConcurrency: null,
        ordering,
    };
}
export const TOPICS = [
    definition(PLAIN),
    definition(OTHER),
    definition(KEYED, "key"),
    definition(STRICT, "strict"),
];
export function hashOf(payload) {
    return createHash("sha256").update(payload, "utf8").digest("hex").slice(0, 32);
}
export function newMessage(id, fields = {}) {
    const payload = fields.payload ?? `{"id":"${id}"}`;
    return {
        id,
        topic: PLAIN,
        tenantId: null,
        key: null,
        payload,
        payloadHash: hashOf(payload),
        delayMs: 0,
        priority: 0,
        orderingKey: null,
        traceparent: null,
        schemaVersion: null,
        ...fields,
    };
}
export const DELIVERED = { kind: "delivered", outcome: "delivered" };
export const RELEASE = { kind: "release" };
export function retry(delayMs = 0, counted = true, suspicion = 0) {
    return { kind: "retry", delayMs, counted, suspicion, outcome: "retry", code: "http_503", error: "unavailable" };
}
export function dead(blocksOrder = false) {
    return { kind: "dead", blocksOrder, outcome: "reject", code: "http_422", error: "refused" };
}
export function hold(counted = true) {
    return { kind: "hold", reason: "outcome_unknown", counted, outcome: "unknown", code: "timeout", error: "no answer" };
}
/** The message, which must be there. */
export async function seen(store, id) {
    const view = await store.get(id);
    assert.ok(view, `message ${id} should be there`);
    return view;
}
/** How many messages there are, of one status or of all. */
export async function countOf(store, status) {
    const counts = await store.counts({ delivered: true });
    return counts.reduce((sum, each) => sum + (status === undefined || each.status === status ? each.count : 0), 0);
}
/** The call must be refused with this code of the one error class. */
export async function refused(code, call) {
    await assert.rejects(call, (error) => {
        assert.ok(isMakegoodError(error), `expected MakegoodError ${code}, got ${String(error)}`);
        assert.equal(error.code, code);
        return true;
    });
}
/** For comparing what has no order. */
export function sorted(texts) {
    return [...texts].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}
export const idsOf = (messages) => messages.map(({ id }) => id);
export function shuffled(items) {
    const list = [...items];
    for (let i = list.length - 1; i > 0; i--) {
        const j = Math.floor(systemRandom.next() * (i + 1));
        [list[i], list[j]] = [list[j], list[i]];
    }
    return list;
}
/** True with this probability. */
export const chance = (probability) => systemRandom.next() < probability;
//# sourceMappingURL=fixtures.js.map