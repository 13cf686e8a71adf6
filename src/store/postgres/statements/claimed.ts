/**
 * What the claim statements share: where they begin, how a body is found, how the one lease row of a batch is written, and what comes back.
 */
import type { ClaimedMessage } from "../../../message/message.ts";
import type { From } from "../../store.ts";
import type { Row } from "../connection.ts";
import { KIND_ORDERED, kindSays, type LaneInfo } from "../lane-table.ts";

export const BEGINNINGS = ["oldest", "newest", "inside"] as const;
export type Beginning = (typeof BEGINNINGS)[number];

/** Which statement a lane of a claim calls for. */
export const beginningOf = ({ from }: { readonly from: From }): Beginning => (typeof from === "number" ? "inside" : from);

/** The columns of a body, in the order in which they come back. */
export const BODY = "key, ordering_key, payload, traceparent, schema_version, handed_down";
const body = (pick: (column: string) => string) =>
  BODY.split(", ")
    .map((column) => `${pick(column)} as ${column}`)
    .join(", ");

/** The columns of a body, wherever it is kept. */
export const BODY_COLUMNS = body((column) => `coalesce(m.${column}, k.${column})`);

/** Finds a body by id. The inner limits keep the planner at one index descent, whatever sizes it assumes. */
export const bodyOf = (
  s: string,
  id: string,
) => `left join lateral (select m.id, ${BODY} from ${s}.message m where m.id = ${id} limit 1) m on true
    left join lateral (select ${BODY} from ${s}.message_kept k where m.id is null and k.id = ${id} limit 1) k on true`;

/**
 * A claim promises nobody anything, so its commit need not wait for the disk: if the server dies before the claim reaches it,
 * the message is pending again, and the worker that believed to hold it is told `lost`. See docs/decisions/0009.
 */
export const UNHURRIED = "set_config('synchronous_commit', 'off', true) is not null";

/**
 * The first row of an answer is the lease itself, the messages follow, in the order of its lists: id, lane, attempt, base, the
 * body, suspicion (of one with an order that failed before: more by FAILED). \`marks\`: up to where each lane was read.
 */
export const headOf = (marks: string) =>
  `select null::uuid, null::int, null::int, null::smallint, id::text, token::text, ${marks}, null, null::int, null::boolean, null::smallint from n where ${UNHURRIED}`;

/** Writes the one lease row of a batch and returns it: parameters are the owner and the lease in ms. */
export const leaseOf = (
  s: string,
  clock: string,
  from: string,
  suspicion: string,
  owner: string,
  ms: string,
) => `insert into ${s}.lease (owner, until, suspicion, ids, attempts, bases, lanes)
    select ${owner}::text, ${clock} + ${ms}::int * interval '1 ms', ${suspicion}, array_agg(id), array_agg((attempts + 1)::smallint), array_agg(base), array_agg(lane_id)
    from ${from} having count(*) > 0 returning id, token`;

export const FAILED = 4;

/** Suspects and those that failed before wait between others there, so each row says what it is. */
export function orderedSays(said: number): Pick<ClaimedMessage, "suspicion" | "retried"> {
  const suspicion = (said % FAILED) as ClaimedMessage["suspicion"];
  return { suspicion, retried: said >= FAILED && suspicion === 0 };
}

export function claimedRows(rows: readonly Row[], lanes: Map<number, LaneInfo>): ClaimedMessage[] {
  const claim = { lease: rows[0]?.[4] as string, token: rows[0]?.[5] as string };
  return rows.slice(1).map((row) => {
    const lane = lanes.get(Number(row[1])) as LaneInfo;
    const { suspicion, retried } = lane.kind === KIND_ORDERED ? orderedSays(Number(row[10])) : kindSays(lane.kind);
    // Every field by name: for each message of a drain a spread would cost as much as all the rest.
    return {
      id: row[0] as string,
      claim,
      lane: row[1] as string,
      topic: lane.topic,
      tenantId: lane.tenant === "" ? null : lane.tenant,
      priority: lane.priority,
      key: row[4] as string | null,
      orderingKey: row[5] as string | null,
      // Hazard: a body that is gone would be lost silently if it fell out here; an empty payload is refused by every sink and ends as a dead letter.
      payload: (row[6] as string | null) ?? "",
      traceparent: row[7] as string | null,
      schemaVersion: row[8] === null ? null : Number(row[8]),
      attempt: Number(row[2]),
      base: Number(row[3]),
      handedDown: row[9] === "t",
      suspicion,
      retried,
    };
  });
}
