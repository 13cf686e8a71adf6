/**
 * What every statement needs: our connections, the quoted schema, and the lanes.
 */
import type { Clock } from "../../platform/clock.ts";
import type { Connection } from "./connection.ts";
import { createLaneTable, type LaneTable } from "./lane-table.ts";

export interface Db {
  readonly connection: Connection;
  /** The schema, quoted. */
  readonly s: string;
  readonly lanes: LaneTable;
  readonly clock: Clock;
  readonly idle: IdleWorkers;
}

/** The workers of this process that wait for a hint, as an array literal of their names: they are told here, not by the server. */
export interface IdleWorkers {
  literal: string;
}

export function createDb(connection: Connection, s: string, clock: Clock): Db {
  const lanes = createLaneTable(connection, s, () => clock.monotonicMs());
  return { connection, s, lanes, clock, idle: { literal: "{}" } };
}

/** attempt.outcome, as stored. */
export const OUTCOME_CODES = {
  delivered: 1,
  duplicate: 2,
  retry: 3,
  reject: 4,
  unknown: 5,
  lost: 6,
  interrupted: 7,
} as const;

export const OUTCOME_NAMES = ["", "delivered", "duplicate", "retry", "reject", "unknown", "lost", "interrupted"] as const;

/** dead_letter.resolution, as stored; 3 is a dead letter that was replayed and is no longer one. */
export const RESOLUTION_CODES = { open: 0, resolved: 1, discarded: 2, replayed: 3 } as const;
export const RESOLUTION_NAMES = ["open", "resolved", "discarded"] as const;
