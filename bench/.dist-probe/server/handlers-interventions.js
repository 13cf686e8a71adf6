/**
 * What people do to a message over HTTP: replay, resolve, discard, each with a reason and under the name of who asked.
 */
import { LIMITS } from "../message/limits.js";
import { isUuid } from "../platform/ids.js";
import { readText } from "./body.js";
import { messageJson, withPayload } from "./contract.js";
import { readFields } from "./fields.js";
import { noSuchMessage } from "./handlers-messages.js";
import { jsonText, parsed, refused } from "./http.js";
import { checkJson } from "./payload-scanner.js";
import { problem } from "./problem.js";
const BODY_BYTES = 65_536;
/** Not found, wrong state and a moved revision are thrown by the kernel and become their problems in the app. */
export function interventionHandler(kernel, action) {
    return async (request) => {
        const text = await readText(request, BODY_BYTES);
        if (!text.ok)
            return text.reply;
        const asked = readAsked(text.value);
        if (!asked.ok)
            return asked.reply;
        const id = request.params.get("id") ?? "";
        if (!isUuid(id))
            return noSuchMessage(id);
        const message = await kernel.mg[action](id, { actor: request.actor, ...asked.value });
        const topic = await kernel.mg.store.topics.get(message.topic);
        return jsonText(200, withPayload(messageJson(message, topic), message.payload));
    };
}
function readAsked(text) {
    checkJson(text, "invalid_message");
    const faults = [];
    const fields = readFields(JSON.parse(text), "", faults);
    const reason = fields?.text("reason")?.trim();
    const revision = fields?.integer("revision", 0, Number.MAX_SAFE_INTEGER);
    fields?.refuseUnknown();
    if (fields && !fields.has("reason"))
        fields.fault("reason", "is missing: say why, it becomes part of the history");
    else if (reason === "")
        fields?.fault("reason", "must not be blank");
    else if (reason !== undefined && (Buffer.byteLength(reason) > LIMITS.reasonBytesMax || /\0|\p{Surrogate}/u.test(reason))) {
        fields?.fault("reason", `may have at most ${LIMITS.reasonBytesMax} bytes, without NUL or lone surrogates`);
    }
    if (faults.length === 0 && reason !== undefined)
        return parsed({ reason, revision });
    const errors = faults.map((fault) => ({ ...fault, code: "invalid_message" }));
    const detail = faults.map((fault) => `${fault.field} ${fault.detail}`).join("; ");
    return refused(problem("invalid_message", detail, { errors }));
}
//# sourceMappingURL=handlers-interventions.js.map