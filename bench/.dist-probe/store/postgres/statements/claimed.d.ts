/**
 * What both claim statements share: how a body is found, how the one lease row of a batch is written, and what comes back.
 */
import type { ClaimedMessage } from "../../../message/message.ts";
import type { Row } from "../connection.ts";
import { type LaneInfo } from "../lane-table.ts";
/** What comes back of each claimed row, for plain and ordered alike; lease and token only on the first. */
export declare const CLAIMED = "b.id::text, b.lane_id::text, (b.attempts + 1)::text, b.base::text, b.key, b.ordering_key, b.payload, b.traceparent,\n  b.schema_version::text, b.handed_down::text, b.suspicion::text";
/** Reads a body by id: the inner limit keeps the planner at one index descent, whatever it thinks of the sizes. */
export declare const bodyOf: (s: string, id: string) => string;
/** Writes the one lease row of a batch and returns it: parameters are the owner and the lease in ms. */
export declare const leaseOf: (s: string, clock: string, from: string, owner: string, ms: string) => string;
export declare function claimedRows(rows: readonly Row[], lanes: Map<number, LaneInfo>): ClaimedMessage[];
