/**
 * Lanes and topics by name and by number, cached. A lane is made on a connection of our own and never in the caller's
 * transaction: a lane that is rolled back under a cached number would swallow messages.
 */
import { MakegoodError } from "../../message/errors.js";
/** lane.kind */
export const KIND_ORDERED = 3;
const SELECT = "select l.id, l.topic_id, t.name, l.tenant, l.priority, l.kind";
/** Topics change rarely and say so by a hint; this bounds how long a lost hint can matter. */
const TOPICS_TTL_MS = 5_000;
const nameOf = (topic, tenant, priority, kind) => `${topic}\u0000${tenant}\u0000${priority}\u0000${kind}`;
/** Which topics exist and how they are ordered, read again after a while or a hint. */
function createTopicNames(connection, s, monotonicMs) {
    let topics = new Map();
    let readAt = Number.NEGATIVE_INFINITY;
    const fresh = () => monotonicMs() - readAt < TOPICS_TTL_MS;
    return {
        known: (topic) => fresh() && topics.has(topic),
        async require(topic) {
            if (fresh() && topics.has(topic))
                return;
            const text = `select name, definition::json ->> 'ordering' from ${s}.topic where not deleted`;
            const rows = await connection.rows("read topics", text, [], { reads: true });
            topics = new Map(rows.map(([name, ordering]) => [name, ordering]));
            readAt = monotonicMs();
            if (!topics.has(topic))
                throw unknownTopic(topic);
        },
        kindOf: (topic, orderingKey) => orderingKey !== null && topics.get(topic) !== "none" ? KIND_ORDERED : 0,
        forget() {
            readAt = Number.NEGATIVE_INFINITY;
        },
    };
}
export function createLaneTable(connection, s, monotonicMs) {
    const byName = new Map();
    const byNumber = new Map();
    const topics = createTopicNames(connection, s, monotonicMs);
    function remember([id, topicId, topic, tenant, priority, kind]) {
        const lane = {
            id: Number(id),
            topicId: Number(topicId),
            topic: topic,
            tenant: tenant,
            priority: Number(priority),
            kind: Number(kind),
        };
        byNumber.set(lane.id, lane);
        byName.set(nameOf(lane.topic, lane.tenant, lane.priority, lane.kind), lane);
        return lane;
    }
    async function make(topic, tenant, priority, kind) {
        const cached = byName.get(nameOf(topic, tenant, priority, kind));
        if (cached)
            return cached;
        const values = [topic, tenant, priority, kind];
        await connection.rows("make a lane", `insert into ${s}.lane (topic_id, tenant, priority, kind) select id, $2::text, $3::smallint, $4::smallint from ${s}.topic where name = $1 on conflict do nothing`, values);
        const find = `${SELECT} from ${s}.lane l join ${s}.topic t on t.id = l.topic_id where t.name = $1 and l.tenant = $2 and l.priority = $3 and l.kind = $4`;
        const [row] = await connection.rows("find a lane", find, values, { reads: true });
        if (!row)
            throw unknownTopic(topic);
        return remember(row);
    }
    const placeOf = (topic, tenantId, priority, orderingKey) => {
        const kind = topics.kindOf(topic, orderingKey);
        return [topic, tenantId ?? "", kind === KIND_ORDERED ? 0 : priority, kind];
    };
    return {
        known: (topic, tenantId, priority, orderingKey) => topics.known(topic) ? byName.get(nameOf(...placeOf(topic, tenantId, priority, orderingKey))) : undefined,
        async of(topic, tenantId, priority, orderingKey) {
            await topics.require(topic);
            return make(...placeOf(topic, tenantId, priority, orderingKey));
        },
        sibling: (lane, suspicion) => lane.kind === KIND_ORDERED || lane.kind === suspicion
            ? Promise.resolve(lane)
            : make(lane.topic, lane.tenant, lane.priority, suspicion),
        async byId(ids) {
            const missing = [...new Set(ids)].filter((id) => !byNumber.has(id));
            if (missing.length > 0) {
                const text = `${SELECT} from ${s}.lane l join ${s}.topic t on t.id = l.topic_id where l.id = any($1::int[])`;
                for (const row of await connection.rows("find lanes", text, [missing], { reads: true }))
                    remember(row);
            }
            return byNumber;
        },
        forgetTopics: topics.forget,
    };
}
function unknownTopic(topic) {
    return new MakegoodError("unknown_topic", `there is no topic ${JSON.stringify(topic)}: declare it in code or in the config file, or PUT /api/v1/topics/${topic}`, { topic });
}
//# sourceMappingURL=lane-table.js.map