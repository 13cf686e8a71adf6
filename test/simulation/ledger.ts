/**
 * What the store must hold, kept beside it by other means: every accepted message with where it stands, who holds it, and the order of its
 * key. It learns from calls and answers only, knows no lane and no statement, and forgets what retention may delete.
 */
import type { AttemptRecord, NewMessage, ProvenanceRecord, Resolution, Status, Suspicion } from "../../src/message/message.ts";
import type { Settle } from "../../src/message/settlement.ts";
import type { TopicDefinition } from "../../src/message/topic.ts";
import type { Intervention } from "../../src/store/store.ts";

export interface Entry {
  readonly message: NewMessage;
  readonly ordered: boolean;
  /** Counted as they were accepted. */
  readonly place: number;
  status: Status;
  attempts: number;
  base: number;
  generation: number;
  revision: number;
  resolution: Resolution | null;
  heldReason: string | null;
  suspicion: Suspicion;
  retried: boolean;
  dueMs: number;
  settledMs: number | null;
  lease: string | null;
  rows: number;
  /** The last of them as it must be. */
  lastRow: Row | null;
  /** The reason of the last failure. */
  lastError: string | null;
  provenance: number;
  lastAct: Omit<ProvenanceRecord, "at"> | null;
  diedMs: number | null;
  /** It is attempted to see whether its receiver is back, and never failed before. */
  spared: boolean;
  /** When it last changed in any way. */
  changedMs: number;
}

export type Row = Pick<AttemptRecord, "attempt" | "outcome" | "counted" | "code" | "error"> & { readonly atMs: number };

export interface Lease {
  token: string;
  untilMs: number;
  /** Which process claimed it, or took it over. */
  by: string;
  readonly sinceMs: number;
  readonly open: Set<string>;
}

export interface OrderKey {
  /** Pending ones, by place. */
  readonly waiting: Entry[];
  inFlight: Entry | null;
  blockedBy: Entry | null;
  changedMs: number;
}

export interface TopicLedger {
  definition: TopicDefinition;
  paused: boolean;
  disabled: boolean;
  /** Since when nothing that is the topic's own keeps its messages. */
  openSinceMs: number;
  /** When people or its receiver last stopped it. */
  shutSinceMs: number;
  /** Over all definitions it ever had. */
  attemptsLeast: number;
  attemptsMost: number;
}

export class Ledger {
  readonly entries = new Map<string, Entry>();
  readonly pending = new Set<Entry>();
  readonly dedupe = new Map<string, string>();
  readonly leases = new Map<string, Lease>();
  /** Lease ids that were given out, ever. */
  readonly leasesSeen = new Set<string>();
  readonly keys = new Map<string, OrderKey>();
  readonly topics = new Map<string, TopicLedger>();
  /** Changed since the last look. */
  readonly touched = new Set<string>();
  /** Settled ones in the order of their settling; retention takes them from the front. */
  readonly settled: { readonly entry: Entry; readonly atMs: number }[] = [];
  /** Dead letters that are open, and held ones: what people decide about. */
  readonly undecided = new Set<Entry>();
  readonly leaders = new Map<string, { owner: string; untilMs: number }>();
  /** All that anybody ever gave in, accepted or not. */
  readonly given = new Map<string, NewMessage>();
  /** Ordered ones that were delivered without a detour: order key, place, and under what their effect is known. */
  readonly inOrder: { readonly orderKey: string; readonly place: number; readonly message: NewMessage }[] = [];
  accepted = 0;
  pruned = 0;
  readonly #gone = new Set<string>();
  readonly #keysSeen = new Set<string>();

  touch(entry: Entry, nowMs: number): void {
    entry.changedMs = nowMs;
    this.touched.add(entry.message.id);
  }

  accept(message: NewMessage, nowMs: number): Entry {
    const ordered = message.orderingKey !== null && this.topics.get(message.topic)?.definition.ordering !== "none";
    const rejected = message.directTry?.rejected === true;
    const entry: Entry = {
      message,
      ordered,
      place: ++this.accepted,
      status: rejected ? "dead" : "pending",
      attempts: 0,
      base: 0,
      generation: 0,
      revision: 0,
      resolution: rejected ? "open" : null,
      heldReason: null,
      suspicion: 0,
      retried: false,
      dueMs: nowMs + message.delayMs,
      settledMs: null,
      lease: null,
      rows: message.directTry ? 1 : 0,
      lastRow: directRow(message, nowMs),
      lastError: message.directTry?.error ?? null,
      provenance: 0,
      lastAct: null,
      diedMs: rejected ? nowMs : null,
      spared: false,
      changedMs: nowMs,
    };
    this.entries.set(message.id, entry);
    const scope = scopeOf(message);
    if (scope !== null) {
      this.dedupe.set(scope, message.id);
      this.#keysSeen.add(scope);
    }
    if (rejected) this.undecided.add(entry);
    else this.#wait(entry, nowMs);
    this.touch(entry, nowMs);
    return entry;
  }

  isClaimable(entry: Entry, nowMs: number): boolean {
    if (entry.status !== "pending" || entry.heldReason !== null || entry.dueMs > nowMs) return false;
    if (!entry.ordered) return true;
    const key = this.keyOf(entry);
    return key.inFlight === null && key.blockedBy === null && key.waiting[0] === entry;
  }

  claim(entry: Entry, lease: string, nowMs: number): void {
    this.#leave(entry, nowMs);
    entry.status = "processing";
    entry.attempts++;
    entry.lease = lease;
    if (entry.ordered) this.keyOf(entry).inFlight = entry;
    this.touch(entry, nowMs);
  }

  settle(entry: Entry, { settlement, attempt }: Settle, nowMs: number): void {
    const lease = this.leases.get(entry.lease ?? "");
    lease?.open.delete(entry.message.id);
    if (lease?.open.size === 0) this.leases.delete(entry.lease ?? "");
    entry.lease = null;
    const key = entry.ordered ? this.keyOf(entry) : null;
    if (key) Object.assign(key, { inFlight: null, changedMs: nowMs });
    const counted = "counted" in settlement ? settlement.counted : settlement.kind !== "release";
    if (settlement.kind !== "release") {
      const { code, error } = settlement.kind === "delivered" ? { code: null, error: null } : settlement;
      entry.rows++;
      entry.lastRow = { attempt, outcome: settlement.outcome, counted, code, error, atMs: nowMs };
      entry.lastError = error ?? entry.lastError;
    }
    if (!counted) entry.attempts--;
    if (settlement.kind === "delivered") {
      entry.status = "delivered";
      this.#end(entry, nowMs);
      const { message, place, generation } = entry;
      const straight = generation === 0 && message.key === null && message.directTry === undefined;
      if (key && straight) this.inOrder.push({ orderKey: orderName(message), place, message });
    } else if (settlement.kind === "dead") {
      Object.assign(entry, { status: "dead", resolution: "open", diedMs: nowMs });
      this.undecided.add(entry);
      if (key && settlement.blocksOrder) key.blockedBy = entry;
    } else {
      entry.status = "pending";
      if (settlement.kind === "retry") {
        entry.dueMs = nowMs + settlement.delayMs;
        entry.suspicion = settlement.suspicion;
        entry.retried = settlement.retried === true;
      } else if (settlement.kind === "hold") {
        entry.heldReason = settlement.reason;
        this.undecided.add(entry);
      }
      this.#wait(entry, nowMs);
    }
    this.touch(entry, nowMs);
  }

  allows(entry: Entry, action: Intervention["action"]): boolean {
    if (entry.status === "dead") return entry.resolution === "open" && action !== "cancel" && action !== "reschedule";
    if (entry.status !== "pending") return false;
    return action === "discard" || action === "cancel" || (entry.heldReason === null) === (action === "reschedule");
  }

  intervene(entry: Entry, { action, actor, reason, delayMs = 0 }: Intervention, nowMs: number): void {
    this.#leave(entry, nowMs);
    this.undecided.delete(entry);
    entry.revision++;
    entry.provenance++;
    entry.lastAct = { actor, action, reason };
    if (action === "reschedule") {
      entry.dueMs = nowMs + delayMs;
      this.#wait(entry, nowMs);
      this.touch(entry, nowMs);
      return;
    }
    entry.diedMs = action === "replay" ? null : (entry.diedMs ?? nowMs);
    entry.heldReason = null;
    if (action === "replay") {
      Object.assign(entry, { status: "pending", resolution: null, suspicion: 0, retried: false, dueMs: nowMs });
      entry.generation++;
      entry.base = entry.attempts;
      this.#wait(entry, nowMs);
    } else {
      Object.assign(entry, { status: "dead", resolution: action === "resolve" ? "resolved" : "discarded" });
      this.#end(entry, nowMs);
    }
    this.touch(entry, nowMs);
  }

  /** What retention deletes when it keeps settled ones for so long. */
  prune(keptMs: number, deadKeptMs: number, limit: number, nowMs: number): Entry[] {
    const gone: Entry[] = [];
    const stays = ({ status }: Entry): number => (status === "dead" ? Math.max(keptMs, deadKeptMs) : keptMs);
    while (gone.length < limit) {
      const next = this.settled.findIndex(({ atMs, entry }) => atMs <= nowMs - stays(entry));
      if (next < 0) break;
      const { entry } = this.settled.splice(next, 1)[0] as { entry: Entry };
      this.entries.delete(entry.message.id);
      const scope = scopeOf(entry.message);
      if (scope !== null && this.dedupe.get(scope) === entry.message.id) this.dedupe.delete(scope);
      this.#gone.add(entry.message.id);
      gone.push(entry);
    }
    this.pruned += gone.length;
    return gone;
  }

  /** It was accepted, or another one under its key was. */
  knew(id: string, scope: string | null): boolean {
    return this.entries.has(id) || this.#gone.has(id) || (scope !== null && this.#keysSeen.has(scope));
  }

  wasPruned(id: string): boolean {
    return this.#gone.has(id);
  }

  keyOf(entry: Entry): OrderKey {
    const name = orderName(entry.message);
    let key = this.keys.get(name);
    if (!key) {
      key = { waiting: [], inFlight: null, blockedBy: null, changedMs: 0 };
      this.keys.set(name, key);
    }
    return key;
  }

  #end(entry: Entry, nowMs: number): void {
    entry.settledMs = nowMs;
    this.settled.push({ entry, atMs: nowMs });
  }

  #wait(entry: Entry, nowMs: number): void {
    this.pending.add(entry);
    if (!entry.ordered) return;
    const key = this.keyOf(entry);
    let at = key.waiting.length;
    while (at > 0 && (key.waiting[at - 1] as Entry).place > entry.place) at--;
    key.waiting.splice(at, 0, entry);
    key.changedMs = nowMs;
  }

  #leave(entry: Entry, nowMs: number): void {
    this.pending.delete(entry);
    if (!entry.ordered) return;
    const key = this.keyOf(entry);
    const at = key.waiting.indexOf(entry);
    if (at >= 0) key.waiting.splice(at, 1);
    if (key.blockedBy === entry) key.blockedBy = null;
    key.changedMs = nowMs;
  }
}

const orderName = ({ topic, tenantId, orderingKey }: NewMessage): string => JSON.stringify([topic, tenantId, orderingKey]);

/** A try of deliver() before anything was stored. */
function directRow({ directTry }: NewMessage, atMs: number): Row | null {
  if (!directTry) return null;
  const { code, error, rejected } = directTry;
  return { attempt: 0, outcome: rejected ? "reject" : "retry", counted: false, code, error, atMs };
}

/** Where a key is unique. */
export function scopeOf({ topic, tenantId, key }: Pick<NewMessage, "topic" | "tenantId" | "key">): string | null {
  return key === null ? null : JSON.stringify([topic, tenantId, key]);
}
