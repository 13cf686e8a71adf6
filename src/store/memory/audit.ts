/**
 * The audit seam in memory: the oracle of testing/audit-conformance and of tests that need no database. It survives nothing,
 * so a memory store does not carry it by itself.
 */
import { payloadHash } from "../../message/validate.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import type { AuditStore, StoredAudit } from "../audit.ts";

interface Kept {
  readonly record: StoredAudit;
  readonly hash: string;
}

/** The first moment after the month of `date`, in UTC. */
function monthEndMs(date: Date): number {
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

export function createMemoryAudit({ clock = systemClock }: { readonly clock?: Clock | undefined } = {}): AuditStore {
  /** In the order of their sequences. */
  const kept = new Map<string, Kept>();
  let sequence = 0;
  return {
    async write(record, at) {
      const hash = payloadHash(record.payload);
      const known = kept.get(record.eventId);
      if (known) return { kind: known.hash === hash ? "duplicate" : "conflict", sequence: known.record.sequence };
      const recordedAt = at?.now ?? new Date(clock.wallMs());
      const stored = { ...record, sequence: String(++sequence), recordedAt };
      kept.set(record.eventId, { record: stored, hash });
      return { kind: "stored", sequence: stored.sequence };
    },
    get: async (eventId) => kept.get(eventId)?.record ?? null,
    async list({ auditType, correlationId, limit, after = "0" }) {
      const fits = (record: StoredAudit): boolean =>
        BigInt(record.sequence) > BigInt(after) &&
        (auditType === undefined || record.auditType === auditType) &&
        (correlationId === undefined || record.correlationId === correlationId);
      return [...kept.values()]
        .map(({ record }) => record)
        .filter(fits)
        .slice(0, limit);
    },
    async prune({ keptMs, now }) {
      if (keptMs === null) return 0;
      const beforeMs = (now?.getTime() ?? clock.wallMs()) - keptMs;
      const gone = [...kept].filter(([, { record }]) => monthEndMs(record.recordedAt) <= beforeMs);
      for (const [eventId] of gone) kept.delete(eventId);
      return gone.length;
    },
  };
}
