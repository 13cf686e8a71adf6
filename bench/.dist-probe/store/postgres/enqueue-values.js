import { KIND_ORDERED } from "./lane-table.js";
import { SEPARATOR } from "./statements/enqueue.js";
const numberText = (value) => (value === null ? null : String(value));
export function shortValues({ message, lane }) {
    const values = [
        message.id,
        String(lane.id),
        message.payload,
        String(message.delayMs),
        message.traceparent,
        numberText(message.schemaVersion),
    ];
    if (message.key !== null)
        values.push(String(lane.topicId), lane.tenant, message.key, message.payloadHash);
    return values;
}
export function batchValues(placed, tx) {
    const has = (pick) => placed.some((p) => pick(p) !== null && pick(p) !== undefined);
    const ordering = (p) => (p.lane.kind === KIND_ORDERED ? p.message.orderingKey : null);
    const free = (p) => [
        p.message.key,
        ordering(p),
        p.message.traceparent,
        p.message.directTry?.code,
        p.message.directTry?.error,
    ];
    const parts = {
        keyed: has((p) => p.message.key),
        ordered: has(ordering),
        traced: has((p) => p.message.traceparent),
        versioned: has((p) => p.message.schemaVersion),
        handedDown: has((p) => p.message.directTry),
        tx,
        json: placed.some((p) => free(p).some((text) => text?.includes(SEPARATOR))),
    };
    const list = (pick) => placed.map((p) => pick(p) ?? "").join(",");
    const text = (pick) => {
        const all = placed.map((p) => pick(p) ?? "");
        return parts.json ? JSON.stringify(all) : all.join(SEPARATOR);
    };
    const values = [
        list((p) => p.message.id),
        list((p) => p.lane.id),
        list((p) => p.message.delayMs),
        placed.map((p) => p.message.payload).join(SEPARATOR),
    ];
    if (parts.keyed)
        values.push(text((p) => p.message.key), list((p) => (p.message.key === null ? null : p.message.payloadHash)));
    if (parts.ordered)
        values.push(text(ordering));
    if (parts.traced)
        values.push(text((p) => p.message.traceparent));
    if (parts.versioned)
        values.push(list((p) => p.message.schemaVersion));
    if (parts.handedDown) {
        values.push(text((p) => p.message.directTry && (p.message.directTry.code ?? "direct")), text((p) => p.message.directTry?.error));
    }
    return { parts, values };
}
//# sourceMappingURL=enqueue-values.js.map