import { KIND_ORDERED } from "../lane-table.js";
/** What comes back of each claimed row, for plain and ordered alike; lease and token only on the first. */
export const CLAIMED = `b.id::text, b.lane_id::text, (b.attempts + 1)::text, b.base::text, b.key, b.ordering_key, b.payload, b.traceparent,
  b.schema_version::text, b.handed_down::text, b.suspicion::text`;
/** Reads a body by id: the inner limit keeps the planner at one index descent, whatever it thinks of the sizes. */
export const bodyOf = (s, id) => `left join lateral (
    select key, ordering_key, payload, traceparent, schema_version, handed_down from (
      select * from ${s}.message m where m.id = ${id}
      union all
      select * from ${s}.message_kept m where m.id = ${id}) m limit 1) m on true`;
/** Writes the one lease row of a batch and returns it: parameters are the owner and the lease in ms. */
export const leaseOf = (s, clock, from, owner, ms) => `insert into ${s}.lease (owner, until, size, suspicion, ids, attempts, bases, lanes)
    select ${owner}::text, ${clock} + ${ms}::int * interval '1 ms', count(*), max(suspicion), array_agg(id order by o), array_agg((attempts + 1)::smallint order by o),
      array_agg(base order by o), array_agg(lane_id order by o)
    from ${from} having count(*) > 0 returning id, token`;
export function claimedRows(rows, lanes) {
    const claim = { lease: rows[0]?.[11], token: rows[0]?.[12] };
    return rows.map((row) => {
        const lane = lanes.get(Number(row[1]));
        return {
            id: row[0],
            claim,
            lane: row[1],
            topic: lane.topic,
            tenantId: lane.tenant === "" ? null : lane.tenant,
            priority: lane.priority,
            key: row[4],
            orderingKey: row[5],
            // Hazard: a body that is gone would be lost silently if it fell out here; an empty payload is refused by every sink and ends as a dead letter.
            payload: row[6] ?? "",
            traceparent: row[7],
            schemaVersion: row[8] === null ? null : Number(row[8]),
            attempt: Number(row[2]),
            base: Number(row[3]),
            handedDown: row[9] === "true",
            suspicion: (lane.kind === KIND_ORDERED ? Number(row[10]) : lane.kind),
            leaseSize: rows.length,
        };
    });
}
//# sourceMappingURL=claimed.js.map