/**
 * The audit seam in memory: the oracle of testing/audit-conformance and of tests that need no database. It survives nothing,
 * so a memory store does not carry it by itself.
 */
import { payloadHash } from "../../message/validate.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import type { AuditFilter, AuditHold, AuditStore, StoredAudit } from "../audit.ts";

interface Kept {
  readonly record: StoredAudit;
  readonly hash: string;
}

/** The first moment of the month of `date`, or of one after it, in UTC. */
const monthMs = (date: Date, offset = 0): number => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset, 1);

function fits(record: StoredAudit, { auditType, correlationId, actor, resource, outcome, since, until }: AuditFilter): boolean {
  const equal = { auditType, correlationId, actor, resource, outcome };
  if (Object.entries(equal).some(([name, value]) => value !== undefined && record[name as "actor"] !== value)) return false;
  return !(since && record.occurredAt < since) && !(until && record.occurredAt >= until);
}

const holdsIt = ({ releasedAt, eventId, correlationId }: AuditHold, record: StoredAudit): boolean =>
  releasedAt === null && (eventId === record.eventId || correlationId === record.correlationId);

export function createMemoryAudit({ clock = systemClock }: { readonly clock?: Clock | undefined } = {}): AuditStore {
  /** In the order of their sequences, which here is that of their commits. */
  const kept = new Map<string, Kept>();
  const holds: AuditHold[] = [];
  let sequence = 0;
  const nowOf = (at?: { readonly now?: Date | undefined }): Date => at?.now ?? new Date(clock.wallMs());
  return {
    async write(record, at) {
      const hash = payloadHash(record.payload);
      const known = kept.get(record.eventId);
      if (known) return { kind: known.hash === hash ? "duplicate" : "conflict", sequence: known.record.sequence };
      const number = String(++sequence);
      kept.set(record.eventId, { record: { ...record, sequence: number, position: number, recordedAt: nowOf(at) }, hash });
      return { kind: "stored", sequence: number };
    },
    get: async (eventId) => kept.get(eventId)?.record ?? null,
    async list(filter) {
      const { limit, after = "0" } = filter;
      const all = [...kept.values()].map(({ record }) => record).filter((one) => fits(one, filter));
      const records = all.filter(({ position }) => BigInt(position ?? 0) > BigInt(after)).slice(0, limit);
      return { records, next: records.length === limit ? (records.at(-1)?.position ?? null) : null };
    },
    async hold(target, { actor, reason }, at) {
      const eventId = "eventId" in target ? target.eventId : null;
      const correlationId = "correlationId" in target ? target.correlationId : null;
      if (eventId !== null && !kept.has(eventId)) return null;
      const placed = { id: String(holds.length + 1), eventId, correlationId, reason, placedBy: actor, placedAt: nowOf(at) };
      const hold = { ...placed, releasedBy: null, releasedAt: null, releaseReason: null };
      holds.push(hold);
      return hold;
    },
    async release(id, { actor, reason }, at) {
      const index = holds.findIndex((one) => one.id === id && one.releasedAt === null);
      const hold = holds[index];
      if (!hold) return null;
      const released = { ...hold, releasedBy: actor, releasedAt: nowOf(at), releaseReason: reason };
      holds[index] = released;
      return released;
    },
    async holds({ active, limit, after }) {
      const before = (one: AuditHold): boolean => after === undefined || BigInt(one.id) < BigInt(after);
      return holds
        .filter((one) => before(one) && !(active && one.releasedAt !== null))
        .reverse()
        .slice(0, limit);
    },
    async prune({ keptMs, dryRun, now }) {
      if (keptMs === null) return 0;
      const beforeMs = nowOf({ now }).getTime() - keptMs;
      const all = [...kept.values()].map(({ record }) => record);
      // A month with one that is held stays as a whole.
      const held = new Set(
        all.filter((one) => holds.some((hold) => holdsIt(hold, one))).map(({ recordedAt }) => monthMs(recordedAt)),
      );
      const gone = all.filter(({ recordedAt }) => monthMs(recordedAt, 1) <= beforeMs && !held.has(monthMs(recordedAt)));
      if (!dryRun) for (const { eventId } of gone) kept.delete(eventId);
      return gone.length;
    },
  };
}
