/** Locks and leaderships that ran out long ago: their rows go, and their terms go on growing all the same (REC-54, REC-56). */
import type { MaintenanceJob, Ran } from "../../platform/job.ts";
import type { Home } from "../../store/home.ts";

const EVERY_MS = 3_600_000;
const BATCH = 1_000;

export function cleanLocks(home: Home, keptMs: number): MaintenanceJob {
  const { s } = home;
  const past = `from ${s}.leader where until < statement_timestamp() - ${Math.round(keptMs)}::bigint * interval '1 ms'`;
  return {
    name: "clean-locks",
    about: "deletes locks that ran out",
    rehearses: true,
    everyMs: EVERY_MS,
    where: "leader",
    async run(_, { dryRun, fence, batchSize }): Promise<Ran> {
      if (dryRun) {
        const [row] = await home.read("look at locks")(`select count(*)::text ${past}`);
        return { counts: { would_delete: Number(row?.[0]) } };
      }
      const limit = batchSize ?? BATCH;
      const text = `delete from ${s}.leader where ctid = any (array(select ctid ${past} limit ${limit} for update skip locked)) returning 1`;
      const gone = await home.transaction("clean up locks", ({ run }) => run(text), fence);
      return { counts: { deleted: gone.length }, more: gone.length === limit };
    },
  };
}
