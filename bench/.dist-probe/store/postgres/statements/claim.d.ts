/**
 * CLAIM: takes due messages of the named lanes. Their ready rows are deleted and one lease row for the whole batch is written
 * in the same statement (I3: a message is in `ready` or under one lease, never both). Rows that others hold are skipped, and
 * the batch ends where its payloads would pass `bytesMax`.
 */
import type { ClaimedMessage } from "../../../message/message.ts";
import type { ClaimRequest } from "../../store.ts";
import type { Db } from "../db.ts";
import type { Watermarks } from "../watermark.ts";
export declare function createClaim(db: Db, watermarks: Watermarks): (request: ClaimRequest) => Promise<ClaimedMessage[]>;
