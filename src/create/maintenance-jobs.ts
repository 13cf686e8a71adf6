/**
 * The jobs of this process: which there are for its store, at work while a worker is, and to be run by hand. Retention may be declined by a
 * worker; taking lost leases back belongs to every one.
 */
import { type Archive, createArchive } from "../archive/archive.ts";
import { type ArchiveTo, type SendChunk, shipArchive } from "../archive/ship.ts";
import type { Evidence } from "../evidence/evidence.ts";
import { createJobs, type Jobs } from "../maintenance/by-hand.ts";
import { cleanLocks } from "../maintenance/jobs/clean-locks.ts";
import { pruneAudit } from "../maintenance/jobs/prune-audit.ts";
import { pruneSettled } from "../maintenance/jobs/prune-settled.ts";
import { reclaimExpired } from "../maintenance/jobs/reclaim-expired.ts";
import { type Reconcilable, reconcileStore } from "../maintenance/jobs/reconcile.ts";
import { retireRecords } from "../maintenance/jobs/retire-records.ts";
import { retireTurns } from "../maintenance/jobs/retire-turns.ts";
import { verifyJob } from "../maintenance/jobs/verify.ts";
import { watchBloat } from "../maintenance/jobs/watch-bloat.ts";
import { type Maintenance, startMaintenance } from "../maintenance/maintenance.ts";
import {
  ARCHIVED_CLASSES,
  type ArchivedClass,
  RETENTION,
  RETIRED_TABLES,
  type RetainedClass,
  type Retention,
} from "../maintenance/retention-classes.ts";
import { MakegoodError } from "../message/errors.ts";
import { DEFAULTS } from "../message/limits.ts";
import type { Events } from "../observe/events.ts";
import type { Finding } from "../observe/finding.ts";
import type { Clock } from "../platform/clock.ts";
import { holderName } from "../platform/holder.ts";
import { inTurn, type MaintenanceJob } from "../platform/job.ts";
import type { Random } from "../platform/random.ts";
import { checkSink } from "../sink/check-sink.ts";
import { faultText, type SinkDeps } from "../sink/sink-kind.ts";
import { createSink } from "../sink/sinks.ts";
import { auditOf } from "../store/audit.ts";
import { conservationOf } from "../store/conservation.ts";
import { type Home, homeOf } from "../store/home.ts";
import type { Store } from "../store/store.ts";
import type { TopicTable } from "../topic/topic-table.ts";
import type { Verify } from "../verify/verify.ts";
import type { OpenedRecovery } from "./open-recovery.ts";

export interface RetentionOptions {
  /** How long delivered messages are kept. */
  readonly keptMs?: number | undefined;
  /** How long audit records are kept, where the store has any; absent: for ever. */
  readonly auditKeptMs?: number | null | undefined;
  /** How long other records are kept, by class, in milliseconds; null: for ever. What is not named has its default: 90 days, replays 30. */
  readonly retention?: Partial<Retention> | undefined;
  /** How far back a producer or a person may send something again under its key: everything that would know it must be kept as long. */
  readonly replayWindowMs?: number | undefined;
  /** Where records go that leave: `table` (as if absent), `off`, `file:` and a directory, or the URL of a receiver. */
  readonly archive?: string | undefined;
  /** Which classes go to the archive with their text. Absent: all but `delivered`. */
  readonly archiveClasses?: readonly ArchivedClass[] | undefined;
  /** Seals archive files. */
  readonly archiveSealKey?: string | undefined;
}

const USUALLY: readonly ArchivedClass[] = ARCHIVED_CLASSES.filter((name) => name !== "delivered");
/** A hundred years: what the database can still subtract from a moment. */
const FOREVER_MS = 36_500 * 86_400_000;
const DIRECTORY = /^file:(.+)$/;
/** The database itself lets no younger one go. */
const PROVENANCE_MS_MIN = 7 * 86_400_000;

export interface MaintenanceParts {
  readonly store: Store;
  readonly topics: TopicTable;
  readonly events: Events;
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly sinkDeps: SinkDeps;
  readonly evidence: Evidence | null;
  readonly verify: Verify;
  /** What recovery does by itself, and in which store; its own scheduler runs it. */
  readonly recovery: OpenedRecovery["upkeep"] | null;
}

export interface MaintenanceSwitch {
  /** Returns how to let go of it again. */
  hold(all: boolean): () => Promise<void>;
  readonly jobs: Jobs;
  /** Null where the store keeps none. */
  readonly archive: Archive | null;
  findings(): Finding[];
}

/** DX-4, CON-34: what says that something was seen before must be kept as long as it may come again. */
export function retentionFaults({ keptMs, retention, replayWindowMs, archive }: RetentionOptions): string[] {
  const kept = { delivered: keptMs ?? DEFAULTS.deliveredKeptMs, ...RETENTION, ...retention };
  const faults = (["delivered", "dead", "occurrences", "replays"] as const).flatMap((name) => {
    const ms = name === "dead" ? Math.max(kept.dead ?? Number.POSITIVE_INFINITY, kept.delivered) : kept[name];
    if (replayWindowMs === undefined || ms === null || ms >= replayWindowMs) return [];
    return [
      `the replay window (${days(replayWindowMs)}) is longer than ${name} are kept (${days(ms)}): what is sent again then would be taken for new`,
    ];
  });
  if (kept.provenance !== null && kept.provenance < PROVENANCE_MS_MIN) faults.push("provenance must be kept for 7 days or more");
  const to = archive ?? "table";
  if (!/^(table|off|https?:\/\/\S+)$/.test(to) && !DIRECTORY.test(to))
    faults.push("archive must be table, off, file:/a/directory or the URL of a receiver");
  return faults;
}

const days = (ms: number): string => `${Math.round((ms / 86_400_000) * 100) / 100} days`;

export function createMaintenanceSwitch(
  options: RetentionOptions & { pollMs?: number | undefined; jobs?: readonly MaintenanceJob[] | undefined },
  parts: MaintenanceParts,
): MaintenanceSwitch {
  const { store, events, clock, random } = parts;
  const id = parts.ids();
  const holder = holderName(id);
  const home = homeOf(store);
  const bloat = home && watchBloat(home, clock);
  const reclaim = inTurn(reclaimJob(options, parts, `maintenance-${id}`));
  const retention = [
    ...retentionJobs(options, parts),
    ...(home ? recordJobs(options, parts, home, holder, bloat?.restMs ?? (() => 0)) : []),
  ];
  const jobs = [
    ...retention,
    ...(bloat ? [bloat.job] : []),
    ...(conservationOf(store) ? [verifyJob(parts.verify)] : []),
    ...("quarantined" in store ? [reconcileStore(store as Store & Reconcilable)] : []),
    ...(options.jobs ?? []),
  ].map(inTurn);
  const byHand = [{ store, jobs: [reclaim, ...jobs] }, ...(parts.recovery ? [parts.recovery] : [])];
  const sets = [{ jobs: [reclaim] }, { jobs }].map((set) => ({ ...set, holders: 0, running: null as Maintenance | null }));
  return {
    jobs: createJobs({ holder, clock, events, sets: byHand, beside: parts.recovery?.beside ?? null }),
    archive: home && createArchive({ home, random, sealKey: options.archiveSealKey }),
    findings: () => bloat?.findings() ?? [],
    hold(all) {
      const held = all ? [...sets] : sets.slice(0, 1);
      for (const set of held) {
        set.holders++;
        set.running ??= startMaintenance({ store, owner: holder, clock, random, events, jobs: set.jobs });
      }
      return async () => {
        for (const set of held.splice(0)) {
          set.holders--;
          if (set.holders > 0) continue;
          const { running } = set;
          set.running = null;
          await running?.stop();
        }
      };
    },
  };
}

function reclaimJob({ pollMs }: { pollMs?: number | undefined }, parts: MaintenanceParts, owner: string): MaintenanceJob {
  const { store, topics, random, events } = parts;
  const rulesOf = async (topic: string) => {
    if (!topics.entry(topic)) await topics.find(topic);
    return topics.entry(topic)?.rules;
  };
  // A lost message comes back within its lease and this long.
  const everyMs = Math.min(5_000, Math.max(1_000, pollMs ?? DEFAULTS.pollMs));
  return reclaimExpired({ store, owner, random, events, rulesOf, everyMs });
}

const archives = (options: RetentionOptions, name: ArchivedClass): boolean =>
  options.archive !== "off" && (options.archiveClasses ?? USUALLY).includes(name);

const keptOf = ({ retention }: RetentionOptions, name: RetainedClass): number | null =>
  retention?.[name] === undefined ? RETENTION[name] : (retention[name] as number | null);

function retentionJobs(options: RetentionOptions, { store, events, evidence }: MaintenanceParts): MaintenanceJob[] {
  const { keptMs = DEFAULTS.deliveredKeptMs, auditKeptMs = null } = options;
  const deadKeptMs = keptOf(options, "dead") ?? FOREVER_MS;
  const settled = (["delivered", "dead"] as const).filter((name) => archives(options, name));
  const prune = pruneSettled({ store, events, keptMs, deadKeptMs, archives: settled });
  const audit = auditOf(store);
  const departs = evidence?.departMonth;
  const audits = audit ? [pruneAudit({ audit, events, keptMs: auditKeptMs, departs, archives: archives(options, "audit") })] : [];
  return [prune, ...audits, ...(evidence ? [evidence.job] : [])];
}

function recordJobs(
  options: RetentionOptions,
  parts: MaintenanceParts,
  home: Home,
  holder: string,
  restMs: () => number,
): MaintenanceJob[] {
  const { events, clock, random } = parts;
  const retention = { ...RETENTION, ...options.retention };
  const to = archiveTo(options.archive ?? "table", parts.sinkDeps, parts.ids);
  const depart = parts.evidence?.depart;
  const locksMs = keptOf(options, "locks");
  return [
    ...RETIRED_TABLES.map((table) =>
      retireRecords({
        home,
        events,
        holder,
        table,
        depart,
        retention,
        clock,
        restMs,
        archives: archives(options, table.class as ArchivedClass),
      }),
    ),
    retireTurns({ home, events, keptMs: keptOf(options, "usage_turns"), archives: archives(options, "usage_turns") }),
    ...(locksMs === null ? [] : [cleanLocks(home, locksMs)]),
    ...(to.kind === "table" ? [] : [shipArchive({ home, to, random, sealKey: options.archiveSealKey })]),
  ];
}

const SEND_MS = 60_000;

function archiveTo(to: string, deps: SinkDeps, ids: () => string): ArchiveTo {
  const [, path] = DIRECTORY.exec(to) ?? [];
  if (path !== undefined) return { kind: "directory", path };
  if (!/^https?:/.test(to)) return { kind: "table" };
  const config = { kind: "http", url: to } as const;
  const [fault] = checkSink(config, deps.guard);
  if (fault) throw new MakegoodError("invalid_config", `archive: ${faultText(fault)}`);
  const sink = createSink(config, deps);
  const send: SendChunk = async ({ key, body, sha256, class: name }) => {
    const payload = JSON.stringify({ class: name, sha256, text: body });
    const delivery = {
      id: ids(),
      topic: "makegood/archive",
      tenantId: null,
      idempotencyKey: key,
      key,
      payload,
      attempt: 1,
      traceparent: null,
      schemaVersion: null,
    };
    const outcome = await sink.deliver(delivery, { signal: new AbortController().signal, timeoutMs: SEND_MS });
    if (outcome.kind === "delivered" || outcome.kind === "duplicate") return;
    const said = "error" in outcome ? outcome.error : outcome.kind;
    throw new MakegoodError("sink_refused", `the receiver of the archive did not take ${key}: ${said}`, { key });
  };
  return { kind: "receiver", url: to, send };
}
