/**
 * The Store seam: the path of a message, and nothing else. A method stands here only if its atomicity cannot be composed
 * from the others. Atomicity lives in the store, policy never does: what becomes of a message is decided in message/decide.
 * Every store passes testing/store-conformance, contention and fencing included.
 */
import type {
  Accepted,
  AttemptRecord,
  Claim,
  ClaimedMessage,
  InterventionAction,
  MessageView,
  NewMessage,
  ProvenanceRecord,
  Resolution,
  Status,
  Suspicion,
} from "../message/message.ts";
import type { Settle } from "../message/settlement.ts";
import type { Fence } from "../platform/job.ts";
import type { TopicStore } from "./topics.ts";

/** What a store is, stated so that others can rely on it; the conformance suite checks that it is true. */
export interface StoreTraits {
  readonly name: string;
  /** What an accepted message survives, as the store last knew it: a server may be set otherwise while it runs. */
  readonly survives: "nothing" | "process-crash" | "power-loss";
  /** Whether `enqueue` can take part in a transaction of the caller's. */
  readonly callerTransactions: boolean;
  /** Whether several processes may share it. */
  readonly processes: "one" | "many";
  /** `push`: wake hints arrive from other processes too. `poll`: only from this one. */
  readonly wake: "push" | "poll";
  /** When the certificate of its server ends, as it was at the last connection; null or absent: not known, or no TLS. */
  readonly certificateEndsMs?: number | null;
}

/** All a caller's transaction must offer. An adapter (makegood/adapters) makes it from an ORM's own. */
export interface Transaction {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

export interface CheckHow {
  /** Also asks again what `traits.survives` says, which follows what the server is set to now. */
  readonly durability?: boolean | undefined;
  /** Also tries a write as an enqueue makes it, and takes it back: for a caller that has just been refused. */
  readonly write?: boolean | undefined;
  /** A person knows that the store lost what it held: it is not said any more, by nobody, until it loses it again. */
  readonly acknowledge?: boolean | undefined;
}

export interface Checked {
  /** When this instance last noticed that the store lost what it held (a flush, a restart without its data); null: never, or a person knows. */
  readonly lost: { readonly atMs: number; readonly what: string } | null;
}

/** Set only by tests and simulation; absent, the store's own clock is the authority. */
export interface At {
  readonly now?: Date | undefined;
}

export interface EnqueueOptions extends At {
  readonly tx?: Transaction | undefined;
  /**
   * `all`: one conflict refuses every message of the call and nothing is written.
   * `each` (only without `tx`): the messages belong to independent callers, each is accepted or refused by itself.
   */
  readonly atomic?: "all" | "each" | undefined;
}

/**
 * A lane is the unit of fairness, priority, pause and claim order: the messages of one topic, tenant and priority (ordered ones,
 * suspects and those that failed before have lanes of their own). A claim names lanes and how many messages it wants from each.
 */
export interface Lane {
  readonly lane: string;
  readonly topic: string;
  readonly tenantId: string | null;
  readonly priority: number;
  readonly suspicion: Suspicion;
  /** Its messages failed before: they wait beside those that never did, not before them. Never true of ordered ones and suspects. */
  readonly retried: boolean;
  /** Its messages carry ordering keys: at most one of each key is in flight. */
  readonly ordered: boolean;
  /** Milliseconds until its first message is due; negative: how long that one has been waiting. */
  readonly dueInMs: number;
  /** How many of its messages a claim would find due; only where it was asked for. */
  readonly due?: number | undefined;
}

/** Which part of the lanes is asked for. */
export interface Lanes extends At {
  /** The last lane of the part before; absent: from the beginning. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
  /** Counts what is due of each lane; PostgreSQL reads an index entry for each of them, so not for a loop that looks for work. */
  readonly counted?: boolean | undefined;
}

/**
 * Where in a lane a claim begins; absent: with the oldest. `newest`: those that became due last come first; of an ordered lane heads that never
 * failed and are no suspects. A number from 0 to below 1: there, by the count of what is due, or near it in a lane of thousands; of an
 * ordered lane such heads, too, and the oldest where there are none.
 */
export type From = "oldest" | "newest" | number;

export interface ClaimRequest extends At {
  readonly owner: string;
  readonly leaseMs: number;
  /** Each lane once. */
  readonly lanes: readonly { readonly lane: string; readonly limit: number; readonly from?: From | undefined }[];
  /**
   * Takes exactly these instead, whatever `lanes` says and due or not: a direct try under a claim, a move to another store. What is not
   * pending, is held or carries an ordering key is left out.
   */
  readonly ids?: readonly string[] | undefined;
  /** With `ids`: only those of them that are due, by the store's clock. */
  readonly due?: boolean | undefined;
  /** The payload bytes of the whole batch; at least one message is claimed even if it alone is larger. */
  readonly bytesMax?: number | undefined;
}

export interface ReclaimRequest extends At {
  readonly owner: string;
  readonly leaseMs: number;
  /** Of leases. */
  readonly limit: number;
  /** Nothing is taken over: what is returned is under claims that settle nothing. */
  readonly dryRun?: boolean | undefined;
}

export type SettleResult = "settled" | "lost";

/** `lane` is a hint that this lane has work; null means something changed, look. `topics`: a topic changed. */
export type WakeHint = { readonly kind: "work"; readonly lane: string | null } | { readonly kind: "topics" };

export interface ListFilter extends At {
  readonly status?: Status | undefined;
  readonly resolution?: Resolution | undefined;
  readonly topic?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly key?: string | undefined;
  /**
   * Lists what a claim of these lanes would find due now instead, the longest due first, whatever the filters above say. It has no further page,
   * and costs the same however much waits. Each lane once.
   */
  readonly dueIn?: readonly string[] | undefined;
  /** False: payloads come back empty, for pages that only show where messages stand. */
  readonly payload?: boolean | undefined;
  readonly limit: number;
  /** As returned by the page before; opaque. */
  readonly cursor?: string | undefined;
}

export interface Page {
  /** Newest first, unless the filter says otherwise. */
  readonly data: MessageView[];
  readonly nextCursor: string | null;
}

export interface StatusCount {
  readonly topic: string;
  readonly status: Status;
  readonly resolution: Resolution | null;
  readonly count: number;
  /** Since the oldest one was created, by the store's clock, however often it was tried and whenever it is due. */
  readonly oldestMs: number | null;
}

export interface Intervention extends At {
  readonly id: string;
  /**
   * replay: a dead letter or a held message becomes pending, due now, with a new budget.
   * resolve: a dead letter or a held message is settled by a person. discard: likewise, and also for a pending one.
   * cancel: a pending message, held or not, ends as discarded. reschedule: one that is not held is due `delayMs` from now, its attempts,
   * its lane and its place among those of its ordering key unchanged.
   */
  readonly action: InterventionAction;
  /** reschedule: from now, by the store's clock; absent: at once. */
  readonly delayMs?: number | undefined;
  readonly actor: string;
  readonly reason: string | null;
  /** Refused when the message has moved on since; absent: whatever revision it has. */
  readonly revision?: number | undefined;
}

export type InterventionResult =
  | { readonly kind: "done"; readonly message: MessageView }
  | { readonly kind: "not_found" }
  | { readonly kind: "wrong_state"; readonly status: Status; readonly resolution: Resolution | null }
  | { readonly kind: "revision_conflict"; readonly revision: number };

export interface PruneRequest extends At {
  /** Settled messages are kept this long after they settled; unsettled ones always. */
  readonly keptMs: number;
  /** Dead letters that were resolved or discarded are kept this long, if that is longer; absent: as all that is settled. */
  readonly deadKeptMs?: number | undefined;
  /** The leadership under which it is done: once that has ended, nothing more goes. */
  readonly under?: Fence | null | undefined;
  /** What goes to the archive first, in the same write, where the store has one. */
  readonly archive?: PruneArchive | undefined;
  /** An upper bound on the rows of one call. */
  readonly limit: number;
  /** Hears how many of a class went, once they have. */
  readonly went?: ((name: SettledClass, count: number) => void) | undefined;
  /** Only counts what would go, all of it; nothing changes. */
  readonly dryRun?: boolean | undefined;
}

export interface PruneArchive {
  /** With their text; of the others nothing is kept. */
  readonly classes: readonly SettledClass[];
  /** Hears of each chunk, once it is written. */
  told(chunk: { readonly class: SettledClass; readonly rows: number; readonly bytes: number }): void;
}

/** `dead`: died, and was resolved or discarded by a person. */
export type SettledClass = "delivered" | "dead";

/** A leadership lease. It saves work, it never provides safety (I9). */
export interface Leadership {
  readonly held: boolean;
  /** Rises with each change of leader. */
  readonly term: string;
  readonly owner: string;
}

/** What a dispatcher needs of a store: what is not one may be served, too. */
export type WorkStore = Pick<Store, "lanes" | "claim" | "extend" | "settle" | "wake" | "idle">;

export interface Store {
  readonly traits: StoreTraits;
  readonly topics: TopicStore;

  /** Connects and brings the schema up to date (or checks it). */
  open(): Promise<void>;
  close(): Promise<void>;
  /** Resolves when the store would accept an enqueue now; throws what that would be refused with. */
  check(how?: CheckHow): Promise<Checked>;

  /** Results in the order of the messages. Accepted means durable (I1), once the transaction commits. */
  enqueue(messages: readonly NewMessage[], options?: EnqueueOptions): Promise<Accepted[]>;

  /**
   * The lanes that hold pending messages, due or not; also what is due next. All of them, or with `limit` a part in the store's own order:
   * a caller that got that many goes on after the last one, and fewer are the end.
   */
  lanes(which?: Lanes): Promise<Lane[]>;
  /** Takes due messages: token and lease for each, attempt counted. One live claim per message (I3). */
  claim(request: ClaimRequest): Promise<ClaimedMessage[]>;
  /** Pushes the lease end of each claim's lease out to `leaseMs` from now. In the order given. */
  extend(claims: readonly Claim[], leaseMs: number, at?: At): Promise<("extended" | "lost")[]>;
  /** Writes outcomes under their claims, in the order given. A stale token changes nothing and is told `lost` (I4). */
  settle(settles: readonly Settle[], at?: At): Promise<SettleResult[]>;
  /**
   * Takes over expired leases under new tokens and returns what was in them, payloads empty, for decide() to judge as `lost`
   * and settle() to write. Fences first: their former holders can no longer settle.
   */
  reclaim(request: ReclaimRequest): Promise<ClaimedMessage[]>;

  /** Calls back on hints that there may be work. Hints may be lost or false: polling is the truth. */
  wake(listener: (hint: WakeHint) => void): () => void;
  /** Says whether this process wants hints from others: idle workers do, busy ones would only be slowed down. */
  idle(owner: string, waiting: boolean): Promise<void>;

  get(id: string, at?: At): Promise<MessageView | null>;
  list(filter: ListFilter): Promise<Page>;
  /** Pending, processing and dead; the delivered only when asked for, because that reads them all. */
  counts(options?: { readonly delivered?: boolean | undefined }): Promise<StatusCount[]>;
  /** Oldest first. */
  history(id: string): Promise<{ attempts: AttemptRecord[]; provenance: ProvenanceRecord[] }>;
  /** Fenced by revision; provenance is part of the same write. */
  intervene(intervention: Intervention): Promise<InterventionResult>;
  /** Deletes what is settled and past its time, never anything else (I2), and keeps room ahead for new messages. Returns how many went. */
  prune(request: PruneRequest): Promise<number>;
  /** Takes, renews (`ttlMs` > 0) or gives up (`ttlMs` = 0) the named leadership. */
  lead(name: string, owner: string, ttlMs: number, at?: At): Promise<Leadership>;
}
