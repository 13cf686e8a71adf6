/** Jobs and the archive over HTTP: plain values in the words of the contract. */
import type { Archive } from "../../archive/archive.ts";
import type { OPERATION_ROUTES } from "../../contract/operations.ts";
import { LIMITS } from "../../message/limits.ts";
import { json, notFound, page, refused } from "../http.ts";
import type { Kernel } from "../kernel.ts";
import type { Handlers } from "./handlers.ts";

function archiveOf({ mg }: Kernel): Archive {
  if (mg.archive === null)
    throw refused("needs_postgres", `an archive needs PostgreSQL, and the store is ${mg.store.traits.name}`);
  return mg.archive;
}

export const OPERATIONS: Handlers<keyof typeof OPERATION_ROUTES> = {
  listJobs: (_, { mg }) =>
    page({ data: mg.jobs.list() }, ({ name, about, everyMs, where, rehearses }) => ({
      ...{ name, about, every_ms: everyMs, where, dry_run: rehearses },
    })),
  async runJob({ params, body, actor }, { mg, log }) {
    const { dryRun: dry_run, ...report } = await mg.jobs.run(params.name, body);
    const { result, counts } = report;
    log.info("a job was run by hand", { job: params.name, actor, dry_run, result, counts });
    return json(200, { ...report, dry_run });
  },
  async listArchives({ query }, kernel) {
    const { limit = LIMITS.pageDefault, cursor, class: name } = query;
    const data = await archiveOf(kernel).list({ class: name, limit, after: Number(cursor) || 0 });
    const nextCursor = data.length < limit ? null : String(data.at(-1)?.id);
    return page({ data, nextCursor }, ({ firstId: first_id, lastId: last_id, ...chunk }) => ({ ...chunk, first_id, last_id }));
  },
  async readArchive({ params: { id } }, kernel) {
    if (!/^[1-9][0-9]{0,14}$/.test(id)) throw notFound("archive", id);
    const body = await archiveOf(kernel).read(Number(id));
    return { status: 200, headers: { "content-type": "application/x-ndjson" }, body };
  },
  verifyArchive: async (_, kernel) => json(200, await archiveOf(kernel).verify()),
};
