/**
 * The seeds' store port for unsettled billing obligations (FIN-13…15), under their names, over any Store: an entry is a message
 * of it. The port promises: the first put of a reservation stands, attempts only grow until a person replays, nothing unsettled
 * expires, and a caller without a claim changes nothing.
 */
import type { Store } from "../../store.ts";

/** The four fields of a finalize request; the cost is an integer in decimal text and is never computed with here. */
export interface DLQRequest {
  readonly reservation_id: string;
  readonly tenant_id: string;
  readonly actual_cost_micro: string;
  readonly trace_id: string;
}

export interface NewDLQEntry extends DLQRequest {
  readonly reason: string;
  readonly response_status: number | null;
  /** As the caller counts it at first put; afterwards only incrementAttempt raises it. */
  readonly attempt_count: number;
  /** ISO-8601. Absent: the store's clock, plus `delayMs` of the put. */
  readonly next_attempt_at?: string | undefined;
  /** ISO-8601. Absent: the store's clock. Set once, the only basis for age. */
  readonly created_at?: string | undefined;
}

export interface DLQEntry extends NewDLQEntry {
  readonly next_attempt_at: string;
  readonly created_at: string;
}

export interface PutOptions {
  /** When it is due, from now by the store's clock; wins over `next_attempt_at`. */
  readonly delayMs?: number | undefined;
  /** The reason of a rejection for good: kept as a terminal record in the same write, never replayed by itself. */
  readonly terminal?: string | undefined;
  /** Of a terminal record: why it can never be sent, whole; also a replay sends nothing then. */
  readonly problem?: string | undefined;
}

/**
 * `exists`: nothing was touched, neither attempts nor schedule, also when the first one is terminal by now.
 * `conflict`: the reservation is there with another cost or tenant; the first stands, this one is in quarantine.
 */
export type PutResult = "created" | "exists" | "conflict";

/** A date, or better a delay that the store's own clock adds. */
export type NextAttempt = Date | { readonly delayMs: number };

export interface DLQClaim {
  /** Random; every change under the claim shows it. */
  readonly token: string;
  /** As it stands now, not as it stood when it was listed. */
  readonly entry: DLQEntry;
  /** Earlier claims whose holder died without settling. Counted apart from attempts. */
  readonly abandoned: number;
}

export interface PersistenceCheck {
  readonly state: "verified" | "failed" | "unknown";
  readonly reason: string;
  /** What was read, by its Redis name; empty where nothing could be read. */
  readonly checked: Readonly<Record<string, string>>;
  /** Who vouches for what the server did not say; null: it said so itself. */
  readonly attested: string | null;
}

export interface DLQStore {
  /** The engine's name: redis, memory, postgres. */
  readonly kind: string;
  /** Whether an entry that was put now would survive: connected, and persistence verified or attested. */
  readonly durable: boolean;

  put(entry: NewDLQEntry, options?: PutOptions): Promise<PutResult>;
  get(reservationId: string): Promise<DLQEntry | null>;
  /** Due by the store's clock and unclaimed, at most `batchLimit`, oldest due first; `before` only narrows it. */
  getReady(before?: Date): Promise<DLQEntry[]>;
  /** Settled. With a token: only if it still holds. Without: only while there is no live claim. */
  delete(reservationId: string, token?: string): Promise<boolean>;
  /** Unsettled entries, claimed ones included. */
  count(): Promise<number>;
  /** By created_at; null when there is none. Reads every entry: a caller may have given any of them an earlier one than the store's. */
  oldestEntryAgeMs(): Promise<number | null>;

  /** Null: not there, not due, or claimed already. getReady does not show the entry until the lease ends. */
  claimForReplay(reservationId: string, leaseMs?: number): Promise<DLQClaim | null>;
  /** False: the claim was lost; nothing was changed. */
  releaseClaim(reservationId: string, token: string): Promise<boolean>;
  /** The new count; null when the claim was lost or the entry is gone. It is one write with the end of the claim; releaseClaim() only confirms it. */
  incrementAttempt(reservationId: string, token: string, next: NextAttempt): Promise<number | null>;
  /** Moves the entry to the terminal records. Token null: only while there is no live claim. False: nothing was moved. */
  terminalDrop(reservationId: string, token: string | null, reason: string): Promise<boolean>;

  validatePersistence(): Promise<PersistenceCheck>;
}

export interface TerminalRecord extends DLQEntry {
  readonly terminal_reason: string;
  readonly terminal_at: string;
  /** Attempts before the last replay; `attempt_count` counts since then. */
  readonly attempts_before: number;
  readonly resolution: "open" | "resolved" | "discarded";
  /** Who closed it and why; null while it is open. */
  readonly resolved_by: string | null;
  readonly resolved_reason: string | null;
}

/** What could not be kept as an entry, and why. It never expires. */
export interface Quarantined {
  readonly kind: AlarmKind;
  readonly reservation_id: string;
  readonly at: string;
  /** What is left of it: the refused fields, the fields of a corrupt entry, when an orphan was due. */
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * orphan: kept, but its payload is gone. corrupt: its payload cannot be read. conflict: a second obligation under the same reservation.
 * closed: put again after a person closed its terminal record.
 */
export type AlarmKind = "orphan" | "corrupt" | "conflict" | "closed";

export interface DLQAlarm {
  readonly kind: AlarmKind;
  readonly reservation_id: string;
  readonly detail: string;
}

/** Gauges by state. */
export type DLQGauges = Readonly<Record<"due" | "waiting" | "claimed" | "terminal" | "quarantined", number>>;

/** What people on call need besides the port: nothing terminal or quarantined is out of reach. */
export interface DLQOperations {
  readonly maxRetries: number;
  readonly batchLimit: number;
  extendClaim(reservationId: string, token: string, leaseMs: number): Promise<boolean>;
  /** Open or closed. */
  getTerminal(reservationId: string): Promise<TerminalRecord | null>;
  /** The open ones, oldest first. */
  listTerminal(limit?: number, offset?: number): Promise<TerminalRecord[]>;
  /** Puts an open terminal record back, due now, attempts starting from 0. */
  replayTerminal(reservationId: string): Promise<boolean>;
  /** Closes an open terminal record; it is kept as long as any settled message, seven days by default. */
  resolveTerminal(reservationId: string, how: Resolve): Promise<boolean>;
  listQuarantine(limit?: number, offset?: number): Promise<Quarantined[]>;
  /** What is unsettled is only counted; the open terminal records are read, without payloads. */
  gauges(): Promise<DLQGauges>;
  /** Checks indexes against payloads and payloads against indexes, and mends what does not match, each with an alarm. */
  reconcile(): Promise<{ readonly checked: number; readonly mended: number; readonly quarantined: number }>;
}

/** An adapter of ours: a caller that wants more than the port offers uses the Store under it. */
export interface DLQPort extends DLQStore, DLQOperations {
  readonly store: Store;
}

export interface Resolve {
  readonly as: "resolved" | "discarded";
  readonly actor: string;
  readonly reason: string;
}
