/**
 * The seeds' port in memory: the smallest correct implementation, and what the preset runs on without Redis (FIN-2). It counts
 * attempts, issues claims and keeps terminal records like any other adapter (DF-13), and it never says that it is durable.
 */
import { type Clock, systemClock } from "../../../platform/clock.ts";
import { type Random, systemRandom } from "../../../platform/random.ts";
import type {
  DLQClaim,
  DLQEntry,
  DLQOperations,
  DLQStore,
  DLQStoreOptions,
  NewDLQEntry,
  PutOptions,
  Quarantined,
  TerminalRecord,
} from "./dlq-store.ts";
import {
  alarmBell,
  checkEntry,
  checkId,
  checkLease,
  checkReason,
  DLQ_LIMITS,
  isoMs,
  nextAttempt,
  pageOf,
  sameObligation,
  storeLimits,
  toIso,
} from "./entry.ts";

export interface MemoryDLQStoreOptions extends DLQStoreOptions {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

interface Row {
  readonly entry: DLQEntry;
  readonly nextMs: number;
  readonly createdMs: number;
  /** `told`: what became of it was written; such a claim was not abandoned, even if it was never released. */
  readonly claim: { readonly token: string; readonly untilMs: number; readonly told: boolean } | null;
  readonly abandoned: number;
  readonly attemptsBefore: number;
}

type Terminal = { readonly record: TerminalRecord; readonly goneAtMs: number | null };

export function createMemoryDLQStore(options: MemoryDLQStoreOptions = {}): DLQStore & DLQOperations {
  const { clock = systemClock, random = systemRandom } = options;
  const { maxRetries, batchLimit } = storeLimits(options);
  const alarm = alarmBell(options.onAlarm);
  const rows = new Map<string, Row>();
  const terminals = new Map<string, Terminal>();
  const quarantine = new Map<string, Quarantined>();
  const now = (): number => clock.wallMs();
  const isLive = (row: Row): boolean => row.claim !== null && row.claim.untilMs > now();
  /** The row if this token may change it; without a token, if nobody holds it. */
  const held = (id: string, token: string | null): Row | null => {
    const row = rows.get(id);
    if (!row || (token === null ? isLive(row) : row.claim?.token !== token)) return null;
    return row;
  };
  const terminalOf = (id: string): TerminalRecord | null => {
    const found = terminals.get(id);
    if (found?.goneAtMs != null && found.goneAtMs <= now()) terminals.delete(id);
    return terminals.get(id)?.record ?? null;
  };
  const dueMs = (row: Row): number => (row.claim && isLive(row) ? Math.max(row.claim.untilMs, row.nextMs) : row.nextMs);

  function makeTerminal({ entry, attemptsBefore }: Row, reason: string): void {
    const closed = { resolution: "open", resolved_by: null, resolved_reason: null } as const;
    const ended = { terminal_reason: reason, terminal_at: toIso(now()), attempts_before: attemptsBefore };
    const record = { ...entry, ...ended, ...closed };
    terminals.set(entry.reservation_id, { record, goneAtMs: null });
  }

  function refuse(first: DLQEntry, second: NewDLQEntry): "exists" | "conflict" {
    if (sameObligation(first, second)) return "exists";
    const { reservation_id, tenant_id, actual_cost_micro, trace_id, reason } = second;
    const fields = { reservation_id, tenant_id, actual_cost_micro, trace_id, reason };
    const name = JSON.stringify(["conflict", reservation_id, tenant_id, actual_cost_micro]);
    if (!quarantine.has(name)) quarantine.set(name, { kind: "conflict", reservation_id, at: toIso(now()), fields });
    alarm({ kind: "conflict", reservation_id, detail: "a second obligation with another cost or tenant; the first stands" });
    return "conflict";
  }

  const store: DLQStore & DLQOperations = {
    kind: "memory",
    durable: false,
    maxRetries,
    batchLimit,

    async put(entry: NewDLQEntry, how: PutOptions = {}) {
      checkEntry(entry, how);
      const id = entry.reservation_id;
      const first = rows.get(id)?.entry ?? terminalOf(id);
      if (first) return refuse(first, entry);
      const at = now();
      const createdMs = entry.created_at === undefined ? at : isoMs("created_at", entry.created_at);
      const givenMs = entry.next_attempt_at === undefined ? at : isoMs("next_attempt_at", entry.next_attempt_at);
      const nextMs = how.delayMs === undefined ? givenMs : at + Math.ceil(how.delayMs);
      const { tenant_id, actual_cost_micro, trace_id, reason, response_status, attempt_count } = entry;
      const made: DLQEntry = {
        ...{ reservation_id: id, tenant_id, actual_cost_micro, trace_id, reason, response_status, attempt_count },
        next_attempt_at: toIso(nextMs),
        created_at: entry.created_at ?? toIso(createdMs),
      };
      const row: Row = { entry: made, nextMs, createdMs, claim: null, abandoned: 0, attemptsBefore: 0 };
      if (how.terminal === undefined) rows.set(id, row);
      else makeTerminal(row, how.terminal);
      return "created";
    },

    async get(id) {
      checkId(id);
      return rows.get(id)?.entry ?? null;
    },

    async getReady(before) {
      const untilMs = Math.min(now(), before?.getTime() ?? Number.POSITIVE_INFINITY);
      const ready = [...rows.values()].filter((row) => !isLive(row) && row.nextMs <= untilMs);
      ready.sort((a, b) => a.nextMs - b.nextMs || (a.entry.reservation_id < b.entry.reservation_id ? -1 : 1));
      return ready.slice(0, batchLimit).map(({ entry }) => entry);
    },

    async delete(id, token) {
      checkId(id);
      return held(id, token ?? null) !== null && rows.delete(id);
    },

    count: async () => rows.size,

    async oldestEntryAgeMs() {
      let oldest: number | null = null;
      for (const { createdMs } of rows.values()) oldest = Math.min(oldest ?? createdMs, createdMs);
      return oldest === null ? null : Math.max(0, now() - oldest);
    },

    async claimForReplay(id, leaseMs = DLQ_LIMITS.leaseMs): Promise<DLQClaim | null> {
      checkId(id);
      const lease = checkLease(leaseMs);
      const row = rows.get(id);
      if (!row || isLive(row) || row.nextMs > now()) return null;
      const token = Buffer.from(random.bytes(16)).toString("hex");
      const abandoned = row.abandoned + (row.claim === null || row.claim.told ? 0 : 1);
      rows.set(id, { ...row, abandoned, claim: { token, untilMs: now() + lease, told: false } });
      return { token, entry: row.entry, abandoned };
    },

    async extendClaim(id, token, leaseMs) {
      checkId(id);
      const lease = checkLease(leaseMs);
      const row = held(id, token);
      if (!row?.claim) return false;
      rows.set(id, { ...row, claim: { ...row.claim, untilMs: now() + lease } });
      return true;
    },

    async releaseClaim(id, token) {
      checkId(id);
      const row = held(id, token);
      if (!row) return false;
      rows.set(id, { ...row, claim: null });
      return true;
    },

    async incrementAttempt(id, token, next) {
      checkId(id);
      const { atMs, delayMs } = nextAttempt(next);
      const row = held(id, token);
      if (!row?.claim) return null;
      const nextMs = Math.max(0, atMs ?? now() + delayMs);
      const attempt_count = row.entry.attempt_count + 1;
      const entry = { ...row.entry, attempt_count, next_attempt_at: toIso(nextMs) };
      rows.set(id, { ...row, nextMs, entry, claim: { ...row.claim, told: true } });
      return attempt_count;
    },

    async terminalDrop(id, token, reason) {
      checkId(id);
      checkReason(reason);
      const row = held(id, token);
      if (!row) return false;
      makeTerminal(row, reason);
      return rows.delete(id);
    },

    async validatePersistence() {
      return { state: "failed", reason: "entries are in the memory of this process and end with it", checked: {} };
    },

    async getTerminal(id) {
      checkId(id);
      return terminalOf(id);
    },

    async listTerminal(limit = batchLimit, offset = 0) {
      const { from, count } = pageOf(limit, offset);
      const open = [...terminals.values()].map(({ record }) => record).filter(({ resolution }) => resolution === "open");
      return open.slice(from, from + count);
    },

    async replayTerminal(id) {
      checkId(id);
      const record = terminalOf(id);
      if (record?.resolution !== "open") return false;
      const { terminal_reason, terminal_at, attempts_before, resolution, resolved_by, resolved_reason, ...entry } = record;
      const nextMs = now();
      const createdMs = isoMs("created_at", entry.created_at);
      const again = { ...entry, attempt_count: 0, next_attempt_at: toIso(nextMs) };
      const attemptsBefore = attempts_before + entry.attempt_count;
      rows.set(id, { entry: again, nextMs, createdMs, claim: null, abandoned: 0, attemptsBefore });
      return terminals.delete(id);
    },

    async resolveTerminal(id, { as, actor, reason }) {
      checkId(id);
      checkReason(reason);
      const record = terminalOf(id);
      if (record?.resolution !== "open") return false;
      const closed = { ...record, resolution: as, resolved_by: actor, resolved_reason: reason };
      terminals.set(id, { record: closed, goneAtMs: now() + DLQ_LIMITS.closedKeptMs });
      return true;
    },

    async listQuarantine(limit = batchLimit, offset = 0) {
      const { from, count } = pageOf(limit, offset);
      return [...quarantine.values()].slice(from, from + count);
    },

    async gauges() {
      const all = [...rows.values()];
      const claimed = all.filter(isLive).length;
      const due = all.filter((row) => dueMs(row) <= now()).length;
      const terminal = [...terminals.values()].filter(({ record }) => record.resolution === "open").length;
      return { due, waiting: all.length - claimed - due, claimed, terminal, quarantined: quarantine.size };
    },

    /** One map holds entry and schedule: there is nothing that could differ. */
    reconcile: async () => ({ checked: rows.size, mended: 0, quarantined: 0 }),
  };
  return store;
}
