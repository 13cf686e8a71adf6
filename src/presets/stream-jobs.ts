/**
 * Chores of the seeds' streams, where the configuration names them: consumers that died (REC-54), and the comparison of the store with the
 * stream of dead letters, both ways. The doors keep both right by themselves; this is the audit of it, every ten minutes (REC-38, DF-32).
 */
import { CONSUMERS_JOB } from "../observe/upkeep-metrics.ts";
import type { Clock } from "../platform/clock.ts";
import { createIds } from "../platform/ids.ts";
import type { MaintenanceJob, Ran } from "../platform/job.ts";
import { RECOVERY_TOPIC } from "../recovery/topics.ts";
import { AUDIT_STREAM, connectRedis, deadStreamOf, RECOVERY_STREAM, type RedisPort } from "../store/redis/index.ts";
import { reconcileStream, removeDeadConsumers } from "../store/redis/streams/upkeep.ts";
import type { Store } from "../store/store.ts";
import { auditTopicNames } from "./audit/registry.ts";
import type { StreamsConfig } from "./streams.ts";

const CONSUMERS_MS = 3_600_000;
const RECONCILE_MS = 600_000;
const SILENT_MS = 600_000;
const ENTRIES_A_RUN = 1_000;

interface Named {
  readonly stream: string;
  readonly group: string;
  readonly seedDeadStream: string;
  readonly deadStream?: string | undefined;
  readonly topics: readonly string[];
}

function namedStreams({ audit, recovery }: StreamsConfig): Named[] {
  const own = <T extends object>(given: T): Partial<T> =>
    Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<T>;
  const topics = auditTopicNames(audit?.serviceUrl == null ? "audit" : "audit-write");
  const { deadStream: auditDead, ...auditNames } = AUDIT_STREAM;
  const { deadStream: recoveryDead, ...recoveryNames } = RECOVERY_STREAM;
  return [
    ...(audit ? [{ ...auditNames, ...own({ group: audit.group }), seedDeadStream: auditDead, topics } as Named] : []),
    ...(recovery
      ? [{ ...recoveryNames, ...own(recovery), seedDeadStream: recoveryDead, topics: [RECOVERY_TOPIC] } as Named]
      : []),
  ];
}

/** `silentMs`: for how long nothing was heard of a consumer that is dead; one that holds something and lives is heard of every minute. */
export function streamJobs(config: StreamsConfig | null, store: Store, clock: Clock, silentMs = SILENT_MS): MaintenanceJob[] {
  if (config === null) return [];
  const streams = namedStreams(config);
  const ids = createIds(clock);
  const after = new Map<string, string | null>();

  /** A connection for one run: an hour is too long to keep one for this. */
  async function onEach(work: (redis: RedisPort, stream: Named, add: (counts: Ran["counts"]) => void) => Promise<boolean>) {
    const redis = await connectRedis(config?.redis ?? "", { clock });
    const counts: Record<string, number> = {};
    let more = false;
    try {
      for (const stream of streams)
        more =
          (await work(redis, stream, (found) => {
            for (const [name, count] of Object.entries(found)) counts[name] = (counts[name] ?? 0) + count;
          })) || more;
    } finally {
      await redis.close();
    }
    return { counts, more };
  }

  return [
    {
      name: CONSUMERS_JOB,
      about: "removes consumers of the streams that died; what they held is claimed first",
      rehearses: true,
      everyMs: CONSUMERS_MS,
      where: "leader",
      run: (_, { dryRun }): Promise<Ran> =>
        onEach(async (redis, { stream, group }, add) => {
          const { checked, removed, claimed } = await removeDeadConsumers({ redis, stream, group }, silentMs, dryRun);
          add(dryRun ? { checked, would_remove: removed, would_claim: claimed } : { checked, removed, claimed });
          return false;
        }),
    },
    {
      name: "reconcile-streams",
      about: "compares the dead letters of the store with those of the streams, both ways, and mends it",
      rehearses: true,
      everyMs: RECONCILE_MS,
      where: "leader",
      async run(signal, { dryRun, batchSize }): Promise<Ran> {
        const ran = await onEach(async (redis, { stream, group, topics, ...named }, add) => {
          const deadStream = deadStreamOf({ stream, ...named }, redis.cluster);
          const limit = batchSize ?? ENTRIES_A_RUN;
          const of = { redis, stream, group, deadStream, store, ids, topics };
          const from = dryRun ? null : (after.get(stream) ?? null);
          const { next, ...counts } = await reconcileStream(of, { after: from, limit, dryRun }, signal);
          if (!dryRun) after.set(stream, next);
          add(dryRun ? Object.fromEntries(Object.entries(counts).map(([name, n]) => [`would_be_${name}`, n])) : counts);
          return !dryRun && next !== null;
        });
        const { missing = 0, ...mended } = ran.counts;
        const sum = Object.values(mended).reduce((all, n) => all + n, 0);
        const notes = [
          ...(sum > 0 && !dryRun ? [`${sum} were not where they should have been`] : []),
          ...(missing > 0
            ? [`${missing} are not in the store: retention took them, or it went back; "streams archive" brings them`]
            : []),
        ];
        return { ...ran, notes };
      },
    },
  ];
}
