/**
 * The tiny model beside a store: what was accepted, independently of what the store says became of it, and the rules that
 * say what may happen next. It knows nothing of lanes, statements or indexes.
 */
import assert from "node:assert/strict";
import type { Accepted, ClaimedMessage, NewMessage, Resolution, Status } from "../../src/message/message.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import type { Intervention, Store } from "../../src/store/store.ts";

export interface Entry {
  readonly message: NewMessage;
  readonly ordered: boolean;
  /** Counted as they were accepted. */
  readonly place: number;
  status: Status | "pruned";
  attempts: number;
  base: number;
  generation: number;
  resolution: Resolution | null;
  held: boolean;
  blocks: boolean;
  dueMs: number;
  settledMs: number | null;
  /** The live claim, while it is processing. */
  claim: ClaimedMessage | null;
  rows: number;
  provenance: number;
}

export interface Real {
  readonly store: Store;
  readonly startMs: number;
  readonly nextId: () => string;
}

export class Model {
  nowMs = 0;
  readonly entries = new Map<string, Entry>();
  /** Claims that were settled or taken over: none of them may ever change anything again (I4). */
  readonly stale: ClaimedMessage[] = [];
  readonly leases = new Map<string, { token: string; untilMs: number }>();

  of(status: Entry["status"]): Entry[] {
    return [...this.entries.values()].filter((entry) => entry.status === status);
  }

  /** What an atomic enqueue must answer; the entries it adds. */
  enqueue(messages: readonly NewMessage[], orderedTopic: (topic: string) => boolean): Accepted[] {
    const fresh = new Map<string, NewMessage>();
    const living = (): NewMessage[] => [
      ...[...this.entries.values()].filter(({ status }) => status !== "pruned").map(({ message }) => message),
      ...fresh.values(),
    ];
    const results = messages.map((message): Accepted => {
      if (living().some(({ id }) => id === message.id)) return { kind: "accepted", id: message.id };
      const first = message.key === null ? undefined : living().find((other) => scope(other) === scope(message));
      if (first) return { kind: first.payload === message.payload ? "duplicate" : "conflict", id: first.id };
      fresh.set(message.id, message);
      return { kind: "accepted", id: message.id };
    });
    if (results.some(({ kind }) => kind === "conflict")) return results;
    for (const message of fresh.values()) {
      this.entries.set(message.id, {
        message,
        ordered: message.orderingKey !== null && orderedTopic(message.topic),
        place: this.entries.size,
        status: "pending",
        attempts: 0,
        base: 0,
        generation: 0,
        resolution: null,
        held: false,
        blocks: false,
        dueMs: this.nowMs + message.delayMs,
        settledMs: null,
        claim: null,
        rows: 0,
        provenance: 0,
      });
    }
    return results;
  }

  claimable(entry: Entry): boolean {
    if (entry.status !== "pending" || entry.held || entry.dueMs > this.nowMs) return false;
    if (!entry.ordered) return true;
    const key = [...this.entries.values()].filter((other) => other.ordered && orderOf(other) === orderOf(entry));
    return key.every(
      (other) =>
        other.status !== "processing" &&
        !(other.status === "dead" && other.blocks) &&
        !(other.status === "pending" && other.place < entry.place),
    );
  }

  claimed(message: ClaimedMessage, leaseMs: number): void {
    const entry = this.entries.get(message.id);
    assert.ok(entry && this.claimable(entry), `I3: ${message.id} was claimed although it must not be`);
    entry.attempts++;
    assert.equal(message.attempt, entry.attempts, "attempts count from the claim");
    assert.equal(message.base, entry.base);
    assert.equal(message.payload, entry.message.payload, "I8");
    assert.equal(message.key, entry.message.key, "I7");
    entry.status = "processing";
    entry.claim = message;
    this.leases.set(message.claim.lease, { token: message.claim.token, untilMs: this.nowMs + leaseMs });
  }

  settled(entry: Entry, settlement: Settlement): void {
    assert.ok(entry.claim);
    this.stale.push(entry.claim);
    const { lease } = entry.claim.claim;
    entry.claim = null;
    if (![...this.entries.values()].some((other) => other.claim?.claim.lease === lease)) this.leases.delete(lease);
    if (settlement.kind !== "release") entry.rows++;
    const counted =
      settlement.kind === "retry" || settlement.kind === "hold" ? settlement.counted : settlement.kind !== "release";
    if (!counted) entry.attempts--;
    entry.status = settlement.kind === "delivered" || settlement.kind === "dead" ? settlement.kind : "pending";
    entry.held = settlement.kind === "hold";
    if (settlement.kind === "retry") entry.dueMs = this.nowMs + settlement.delayMs;
    if (settlement.kind === "delivered") entry.settledMs = this.nowMs;
    if (settlement.kind === "dead") {
      entry.resolution = "open";
      entry.blocks = entry.ordered && settlement.blocksOrder;
    }
  }

  allows(entry: Entry, action: Intervention["action"]): boolean {
    if (entry.status === "dead") return entry.resolution === "open" && action !== "cancel" && action !== "reschedule";
    if (entry.status !== "pending") return false;
    return action === "discard" || action === "cancel" || entry.held === (action !== "reschedule");
  }

  intervened(entry: Entry, action: Intervention["action"], delayMs: number): void {
    entry.provenance++;
    if (action === "reschedule") {
      entry.dueMs = this.nowMs + delayMs;
      return;
    }
    entry.held = false;
    entry.blocks = false;
    if (action === "replay") {
      entry.status = "pending";
      entry.resolution = null;
      entry.generation++;
      entry.base = entry.attempts;
      entry.dueMs = this.nowMs;
    } else {
      entry.status = "dead";
      entry.resolution = action === "resolve" ? "resolved" : "discarded";
      entry.settledMs = this.nowMs;
    }
  }
}

const scope = ({ topic, tenantId, key }: NewMessage): string => JSON.stringify([topic, tenantId, key]);
const orderOf = ({ message }: Entry): string => JSON.stringify([message.topic, message.tenantId, message.orderingKey]);

/** I12 and I2 after every step: accepted = pending + processing + delivered + dead + pruned, as the store counts them. */
export async function conserved({ entries }: Model, { store }: Real): Promise<void> {
  const expected = new Map<string, number>();
  for (const { status } of entries.values()) expected.set(status, (expected.get(status) ?? 0) + 1);
  expected.delete("pruned");
  const found = new Map<string, number>();
  for (const { status, count } of await store.counts({ delivered: true }))
    if (count > 0) found.set(status, (found.get(status) ?? 0) + count);
  assert.deepEqual([...found].sort(byName), [...expected].sort(byName), "I12: what was accepted is not what is there");
}

const byName = ([a]: [string, number], [b]: [string, number]): number => (a < b ? -1 : 1);

/** Everything the store says of one message is what the model knows of it. */
export async function agrees(entry: Entry, { store, startMs }: Real): Promise<void> {
  const view = await store.get(entry.message.id);
  if (entry.status === "pruned") return assert.equal(view, null);
  assert.ok(view, `I2: ${entry.message.id} vanished`);
  const { status, attempts, resolution, generation, held } = entry;
  assert.deepEqual(
    [view.status, view.attempts, view.resolution, view.heldReason !== null, view.payload, view.key],
    [status, attempts, resolution, held, entry.message.payload, entry.message.key],
  );
  assert.equal(view.nextAttemptAt?.getTime(), status === "pending" && !held ? startMs + entry.dueMs : undefined);
  const history = await store.history(entry.message.id);
  assert.equal(history.attempts.length, entry.rows, "I5: one row for each attempt that was started");
  assert.equal(history.provenance.length, entry.provenance);
  assert.ok(generation === 0 || view.generation >= generation);
}
