/**
 * Topics over HTTP: declare, read, list, pause, resume, delete. What the config file or code declared is read-only here.
 */
import { isTopicName } from "../message/validate.js";
import { readText } from "./body.js";
import { readTopic, topicJson } from "./contract-topic.js";
import { json } from "./http.js";
import { checkJson } from "./payload-scanner.js";
import { problem } from "./problem.js";
const BODY_BYTES = 262_144;
export function topicHandlers(kernel) {
    const { topics } = kernel.mg.store;
    return {
        put: (request) => putTopic(kernel, request),
        async get(request) {
            const name = nameOf(request);
            const topic = isTopicName(name) ? await topics.get(name) : null;
            return topic ? json(200, topicJson(topic)) : noSuchTopic(name);
        },
        async list(request) {
            const unknown = [...request.query.keys()];
            if (unknown.length > 0)
                return problem("invalid_query", `unknown parameter ${unknown[0]?.slice(0, 100)}`);
            return json(200, { data: (await topics.list()).map(topicJson), next_cursor: null });
        },
        async remove(request) {
            const name = nameOf(request);
            const result = isTopicName(name) ? await topics.delete(name, "api") : "not_found";
            if (result === "deleted") {
                kernel.log.info("a topic was deleted", { topic: name, actor: request.actor });
                return { status: 204, headers: {}, body: "" };
            }
            if (result === "read_only")
                return readOnly(name);
            if (result === "not_found")
                return noSuchTopic(name);
            return problem("topic_in_use", `topic ${name} has messages that are not settled: deliver, resolve or discard them first`);
        },
        pause: (request) => setPaused(kernel, request, true),
        resume: (request) => setPaused(kernel, request, false),
    };
}
async function putTopic(kernel, request) {
    const text = await readText(request, BODY_BYTES);
    if (!text.ok)
        return text.reply;
    checkJson(text.value, "invalid_topic");
    const name = nameOf(request);
    const read = readTopic(name, JSON.parse(text.value), { checkSink: kernel.checkSink, trusted: false });
    if (!read.ok)
        return invalidTopic(read.faults);
    const { topics } = kernel.mg.store;
    const before = await topics.get(name);
    if (before && before.source !== "api")
        return readOnly(name);
    // Pausing comes before the change and resuming after it, so that nothing is attempted in between under either.
    if (read.paused === true && before)
        await topics.pause(name, true);
    const put = await topics.put(read.definition, "api");
    if (put === "read_only")
        return readOnly(name);
    const paused = read.paused === undefined || read.paused === put.paused ? put : await topics.pause(name, read.paused);
    kernel.log.info(before ? "a topic was replaced" : "a topic was declared", { topic: name, actor: request.actor });
    return json(before ? 200 : 201, topicJson(paused ?? put));
}
async function setPaused(kernel, request, paused) {
    const text = await readText(request, BODY_BYTES, true);
    if (!text.ok)
        return text.reply;
    const name = nameOf(request);
    const topic = isTopicName(name) ? await kernel.mg.store.topics.pause(name, paused) : null;
    if (!topic)
        return noSuchTopic(name);
    kernel.log.info(paused ? "a topic was paused" : "a topic was resumed", { topic: name, actor: request.actor });
    return json(200, topicJson(topic));
}
function nameOf(request) {
    return `${request.params.get("namespace") ?? ""}/${request.params.get("name") ?? ""}`;
}
function noSuchTopic(name) {
    return problem("topic_not_found", `there is no topic ${name.slice(0, 250)}`);
}
function readOnly(name) {
    return problem("topic_read_only", `topic ${name} is declared in the config file or in code: change it there`);
}
function invalidTopic(faults) {
    const errors = faults.map((fault) => ({ ...fault, code: "invalid_topic" }));
    const detail = faults.map((fault) => `${fault.field}: ${fault.detail}`).join("; ");
    return problem("invalid_topic", detail, { errors });
}
//# sourceMappingURL=handlers-topics.js.map