/**
 * What the memory store holds: every message with where it stands, lanes, leases, dedupe keys, topics, leaderships. Plain
 * maps, changed only by the functions beside this file, each of which runs without a pause: that is all its atomicity.
 */
import type { AttemptRecord, NewMessage, ProvenanceRecord, Resolution, Status, Suspicion } from "../../message/message.ts";
import type { Bucket } from "../../message/rate.ts";
import type { TopicDefinition, TopicSource } from "../../message/topic.ts";
import type { WorkerNote } from "../../message/worker-note.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { At, WakeHint } from "../store.ts";

/** One message: the accepted part, which never changes (I8), and where it stands. */
export interface Stored {
  readonly message: NewMessage;
  /** Decided once, when it was accepted: a later change of the topic's ordering does not move what already waits. */
  readonly ordered: boolean;
  readonly createdMs: number;
  /** Its place among the messages of its ordering key: counted as they were accepted. */
  readonly seq: number;
  status: Status;
  /** Counted at claim; given back by what is released or not counted. */
  attempts: number;
  base: number;
  generation: number;
  revision: number;
  suspicion: Suspicion;
  retried: boolean;
  dueMs: number;
  heldReason: string | null;
  diedMs: number | null;
  /** When it died and when that death came to its group, by `State.marks`: what came after a mark was not seen by it. */
  diedMark: number;
  groupedMark: number;
  resolution: Resolution | null;
  /** The attempts of the death that recovery has counted; another number: this death waits to be ingested. */
  ingestedAttempts: number | null;
  /** When it was delivered, resolved or discarded: retention counts from here. */
  settledMs: number | null;
  readonly history: AttemptRecord[];
  readonly provenance: ProvenanceRecord[];
}

/** The messages of one ordering key. */
export interface OrderingKey {
  /** Pending ones in their order; the head may be waiting or held and then blocks the rest. */
  readonly waiting: Stored[];
  /** The head, while it is in its lane's list of what may be claimed. */
  shown: Stored | null;
  inFlight: boolean;
  /** The dead head of a strict topic that keeps the key closed until a person decides. */
  blockedBy: string | null;
}

export interface LaneState {
  readonly lane: string;
  readonly topic: string;
  readonly tenantId: string | null;
  readonly priority: number;
  readonly suspicion: Suspicion;
  readonly retried: boolean;
  readonly ordered: boolean;
  /** By (due, place); held ones are not in it, and of each ordering key only the head while nothing of it is in flight. */
  due: Stored[];
  readonly keys: Map<string, OrderingKey>;
}

export interface Lease {
  readonly id: string;
  readonly size: number;
  /** Still unsettled: message id → the lane it was claimed from. The lease goes with the last one. */
  readonly open: Map<string, string>;
  token: string;
  owner: string;
  untilMs: number;
}

export interface TopicState {
  definition: TopicDefinition;
  source: TopicSource;
  revision: number;
  paused: boolean;
  disabledReason: string | null;
  /** Null: closed. */
  breaker: { openUntilMs: number; reason: string | null } | null;
  /** Until when no other worker may probe; with the topic closed, one of the held tenants. */
  probeUntilMs: number | null;
  restUntilMs: number | null;
  /** Tenant → reason. */
  readonly heldTenants: Map<string, string>;
  trips: number;
}

export interface State {
  readonly clock: Clock;
  readonly random: Random;
  readonly messages: Map<string, Stored>;
  /** Scope of the key → the id that holds it. */
  readonly dedupe: Map<string, string>;
  readonly lanes: Map<string, LaneState>;
  readonly leases: Map<string, Lease>;
  readonly topics: Map<string, TopicState>;
  readonly workers: Map<string, { note: WorkerNote; untilMs: number }>;
  /** Bucket → how many starts it held then. */
  readonly starts: Map<string, Bucket>;
  /** Topic → owner → how many attempts it may have at once, and until when. */
  readonly slots: Map<string, Map<string, { held: number; untilMs: number }>>;
  readonly leaders: Map<string, { owner: string; term: bigint; untilMs: number }>;
  readonly listeners: Set<(hint: WakeHint) => void>;
  leasesMade: number;
  accepted: number;
  /** Raised by every death, and by every death that comes to a group. */
  marks: number;
}

export function createState(clock: Clock, random: Random): State {
  return {
    clock,
    random,
    messages: new Map(),
    dedupe: new Map(),
    lanes: new Map(),
    leases: new Map(),
    topics: new Map(),
    workers: new Map(),
    starts: new Map(),
    slots: new Map(),
    leaders: new Map(),
    listeners: new Set(),
    leasesMade: 0,
    accepted: 0,
    marks: 0,
  };
}

/** The moment of a call: the caller's in tests and simulation, else the store's clock. */
export function nowMs(state: State, at?: At): number {
  return at?.now?.getTime() ?? state.clock.wallMs();
}

/** Tells listeners after the write; one that throws must not change what happened to a message. */
export function hint(state: State, what: WakeHint): void {
  for (const listener of state.listeners) {
    try {
      listener(what);
    } catch {
      // Hints may be lost: polling is the truth.
    }
  }
}
