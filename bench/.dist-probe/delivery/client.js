/**
 * The way in: checks a message, prints its payload once, makes its id before the first try and hands it to the store, on
 * its own or inside the caller's transaction. `{ id, inserted }` comes back once it is durable; the same key with another
 * payload is refused, never silently ignored.
 */
import { errorText, isMakegoodError, MakegoodError } from "../message/errors.js";
import { LIMITS } from "../message/limits.js";
import { issueText } from "../message/standard-schema.js";
import { checkFields, parsePayloadText, payloadHash, payloadText } from "../message/validate.js";
export function createClient(options) {
    const { store, acceptance, topics, declared, ids, events } = options;
    async function accept(messages, call) {
        call.signal?.throwIfAborted();
        const one = messages.length === 1 && !call.tx ? messages[0] : undefined;
        const results = one
            ? [await acceptance.acceptOne(one, call.signal)]
            : await acceptance.acceptAll(messages, call.tx, call.signal);
        const conflicts = results.flatMap((result, index) => (result.kind === "conflict" ? [conflict(result, index, messages)] : []));
        throwAll(conflicts, messages.length);
        if (events.heard)
            announce(messages, results);
        return results.map(({ id, kind }) => ({ id, inserted: kind === "accepted" }));
    }
    function announce(messages, results) {
        const counts = new Map();
        results.forEach(({ kind }, i) => {
            const { topic } = messages[i];
            const count = counts.get(topic) ?? { inserted: 0, duplicate: 0 };
            counts.set(topic, count);
            count[kind === "accepted" ? "inserted" : "duplicate"]++;
        });
        for (const [topic, count] of counts)
            events.emit({ type: "accepted", topic, ...count });
    }
    /** Without a promise wherever nothing has to be asked: in a batch of a thousand they are what costs. */
    function build(topic, text, value, fields) {
        const name = typeof topic === "string" ? topic : topic.name;
        const schema = (typeof topic === "string" ? declared.get(topic)?.schema : topic.schema) ?? null;
        const verdict = schema ? schema["~standard"].validate(value) : null;
        const known = topics.known(name);
        if (known && !(verdict instanceof Promise)) {
            if (verdict !== null)
                checkVerdict(verdict);
            return newMessage(known, text, fields);
        }
        return buildLater(name, text, fields, verdict);
    }
    async function buildLater(name, text, fields, verdict) {
        const result = await verdict;
        if (result)
            checkVerdict(result);
        const known = await topics.find(name);
        if (!known)
            throw new MakegoodError("unknown_topic", `there is no topic ${name}: declare it first`, { topic: name });
        return newMessage(known, text, fields);
    }
    function newMessage(topic, payload, fields) {
        return {
            id: fields.id ?? ids(),
            topic: topic.name,
            tenantId: fields.tenantId ?? null,
            key: fields.key ?? null,
            payload,
            payloadHash: payloadHash(payload),
            delayMs: fields.delayMs ?? 0,
            priority: fields.priority ?? 0,
            orderingKey: topic.ordering === "none" ? null : (fields.orderingKey ?? null),
            traceparent: fields.traceparent ?? null,
            schemaVersion: topic.schemaVersion,
        };
    }
    function fromValue(topic, payload, fields) {
        checkFields(fields);
        return build(topic, payloadText(payload), payload, fields);
    }
    function fromText(message) {
        checkFields(message);
        return build(message.topic, message.payloadText, parsePayloadText(message.payloadText), message);
    }
    /** Every message that is wrong is reported, not only the first. */
    async function many(count, make, call) {
        if (count > LIMITS.batchMessagesMax) {
            const limit = LIMITS.batchMessagesMax;
            throw new MakegoodError("invalid_message", `a batch may have at most ${limit} messages, this one has ${count}`, { limit });
        }
        if (count === 0)
            return [];
        const messages = [];
        const errors = [];
        for (let index = 0; index < count; index++) {
            try {
                const made = make(index);
                messages.push(made instanceof Promise ? await made : made);
            }
            catch (error) {
                if (!isMakegoodError(error) || error.retryable)
                    throw error;
                errors.push({ index, error });
            }
        }
        throwAll(errors, count);
        return accept(messages, call);
    }
    async function intervene(action, id, options) {
        const { actor, reason = null, revision } = options;
        const result = await store.intervene({ id, action, actor, reason, revision });
        if (result.kind !== "done")
            throw refusal(action, id, result);
        events.emit({ type: "intervened", id, action, actor, reason });
        return result.message;
    }
    return {
        async enqueue(topic, payload, call = {}) {
            const [result] = await accept([await fromValue(topic, payload, call)], call);
            return result;
        },
        enqueueMany: (topic, messages, call = {}) => many(messages.length, (i) => fromValue(topic, messages[i]?.payload, messages[i]), call),
        enqueueText: (messages, call = {}) => many(messages.length, (i) => fromText(messages[i]), call),
        replay: (id, call) => intervene("replay", id, call),
        resolve: (id, call) => intervene("resolve", id, call),
        discard: (id, call) => intervene("discard", id, call),
    };
}
/** The schema judges; what it makes of the payload goes to the handler, the text that was given is stored. */
function checkVerdict(result) {
    if (!result.issues)
        return;
    const issues = result.issues.map(issueText);
    const first = issues[0] ?? { path: "", message: "no reason given" };
    const where = first.path === "" ? "" : `${first.path}: `;
    const text = `the payload does not fit the topic's schema: ${where}${first.message}`;
    throw new MakegoodError("payload_rejected_by_schema", text, { issues });
}
/** A single message throws its own error; in a batch the first one's, with all of them in the detail. */
function throwAll(errors, count) {
    const first = errors[0];
    if (!first)
        return;
    if (count === 1)
        throw first.error;
    const list = errors.map(({ index, error }) => ({ index, code: error.code, message: errorText(error), detail: error.detail }));
    const text = `message ${first.index} of ${count}: ${first.error.message}`;
    throw new MakegoodError(first.error.code, text, { ...first.error.detail, index: first.index, errors: list });
}
function conflict(result, index, messages) {
    const { key, topic, tenantId, id } = messages[index];
    const text = `key ${JSON.stringify(key)} of topic ${topic} belongs to message ${result.id}, which has another payload`;
    const error = new MakegoodError("key_conflict", text, { id: result.id, refusedId: id, key, topic, tenantId });
    return { index, error };
}
function refusal(action, id, result) {
    switch (result.kind) {
        case "not_found":
            return new MakegoodError("message_not_found", `there is no message ${id}`, { id });
        case "wrong_state": {
            const { status, resolution } = result;
            const state = resolution ? `${status} (${resolution})` : status;
            return new MakegoodError("wrong_state", `message ${id} is ${state}: ${action} does not apply`, { id, status, resolution });
        }
        case "revision_conflict": {
            const text = `message ${id} has moved on to revision ${result.revision}: look again before you ${action} it`;
            return new MakegoodError("revision_conflict", text, { id, revision: result.revision });
        }
    }
}
//# sourceMappingURL=client.js.map