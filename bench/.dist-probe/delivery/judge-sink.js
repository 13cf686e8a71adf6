/**
 * What an outcome says about the receiver, apart from the message: proof that it lives, a failure for its breaker to count, or
 * its wish to be sent nothing more.
 */
import { errorText } from "../message/errors.js";
export function judgeSink(attempt, outcome, nowMs, context) {
    const { topic } = attempt.lane;
    switch (outcome.kind) {
        case "delivered":
        case "duplicate":
        case "reject":
            topic.breaker.proved();
            return;
        case "retry":
            attempt.alert = outcome.alert === true;
            topic.breaker.failed(attempt.message.id, attempt.startedMs, nowMs, `${outcome.code}: ${outcome.error}`);
            return;
        case "unknown":
            topic.breaker.failed(attempt.message.id, attempt.startedMs, nowMs, `${outcome.code}: ${outcome.error}`);
            return;
        case "disable":
            disable(topic, `${outcome.code}: ${outcome.error}`, context);
    }
}
function disable(topic, reason, { topicStore, events, track }) {
    if (!topic.entry || topic.entry.record.disabledReason !== null)
        return;
    topic.entry.record = { ...topic.entry.record, disabledReason: reason };
    events.emit({ type: "sink_disabled", topic: topic.name, reason });
    track(topicStore.disable(topic.name, reason).catch((error) => {
        events.emit({ type: "store_error", during: "disable", error: errorText(error), consecutive: 1 });
    }));
}
//# sourceMappingURL=judge-sink.js.map