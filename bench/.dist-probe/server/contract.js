const instant = (date) => (date === null ? null : date.toISOString());
/** Why nothing happens to a pending message: its own hold first, else what its topic is in. */
export function heldReason(message, topic) {
    if (message.status !== "pending")
        return null;
    if (message.heldReason !== null || topic === null)
        return message.heldReason;
    if (topic.paused)
        return "topic_paused";
    if (topic.disabledReason !== null)
        return "sink_disabled";
    return topic.breaker.state === "closed" ? null : "breaker_open";
}
export function messageJson(message, topic) {
    return {
        id: message.id,
        topic: message.topic,
        tenant_id: message.tenantId,
        key: message.key,
        ordering_key: message.orderingKey,
        priority: message.priority,
        status: message.status,
        attempts: message.attempts,
        generation: message.generation,
        revision: message.revision,
        resolution: message.resolution,
        held_reason: heldReason(message, topic),
        next_attempt_at: instant(message.dueAt),
        created_at: message.createdAt.toISOString(),
        died_at: instant(message.diedAt),
        last_error: message.lastError,
        last_code: message.lastCode,
        schema_version: message.schemaVersion,
        traceparent: message.traceparent,
    };
}
export function attemptJson(record) {
    return {
        attempt: record.attempt,
        outcome: record.outcome,
        counted: record.counted,
        at: record.at.toISOString(),
        duration_ms: record.durationMs,
        code: record.code,
        error: record.error,
        next_attempt_at: instant(record.nextDueAt),
    };
}
export function provenanceJson(record) {
    return { at: record.at.toISOString(), actor: record.actor, action: record.action, reason: record.reason };
}
/** I8: the payload is spliced in as the text it is; parsing and printing it again would change numbers and escapes. */
export function withPayload(object, payload) {
    return `${JSON.stringify(object).slice(0, -1)},"payload":${payload}}`;
}
/** A page of messages as JSON text, each with or without its payload. */
export function pageText(page, topics, payloads) {
    const data = page.data.map((message) => {
        const object = messageJson(message, topics.get(message.topic) ?? null);
        return payloads ? withPayload(object, message.payload) : JSON.stringify(object);
    });
    return `{"data":[${data.join(",")}],"next_cursor":${JSON.stringify(page.nextCursor)}}`;
}
export function countJson(count) {
    const { topic, status, resolution, oldestMs } = count;
    return { topic, status, resolution, count: count.count, oldest_ms: oldestMs };
}
//# sourceMappingURL=contract.js.map