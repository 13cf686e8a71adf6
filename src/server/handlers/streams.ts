/** Streams of dead letters over HTTP. Each call is one bounded piece of work that can be cut off anywhere and made again. */
import { STREAM_ENTRIES_MAX, STREAM_LENGTH, type STREAM_ROUTES } from "../../contract/streams.ts";
import { LIMITS } from "../../message/limits.ts";
import {
  archiveDead,
  type DeadEntry,
  findDead,
  type Replaying,
  readDead,
  replayDead,
  trimDead,
} from "../../store/redis/index.ts";
import { json, refused } from "../http.ts";
import type { Kernel } from "../kernel.ts";
import { refusalOf } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";

const ENTRY_ID = /^[0-9]{1,20}(-[0-9]{1,20})?$/;

const shown = ({ messageId: message_id, entryId: entry_id, fields, ...entry }: DeadEntry) => ({ ...entry, message_id, entry_id });

async function on<T>(
  { params, actor }: { params: { name: string }; actor: string },
  kernel: Kernel,
  use: (parts: Replaying) => Promise<T>,
) {
  const { streams } = kernel;
  if (!streams) throw refused("stream_not_found", "this server has no streams (MAKEGOOD_STREAMS)");
  return streams(params.name, actor, use);
}

const lengthOf = async ({ redis, stream }: Replaying): Promise<number> => Number(await redis.send(stream, ["XLEN", stream]));

/** `max`: null: archived only. */
function archiving(max: number | null, dry_run: boolean) {
  return async (parts: Replaying) => {
    const length = await lengthOf(parts);
    const selected = max === null ? length : Math.max(0, length - max);
    const none = { done: 0, skipped: 0, removed: 0, errors: [] };
    const { done, skipped, removed, errors } = dry_run ? none : await (max === null ? archiveDead(parts) : trimDead(parts, max));
    return json(200, { dry_run, length, selected, archived: done, skipped, trimmed: removed, errors });
  };
}

export const STREAMS: Handlers<keyof typeof STREAM_ROUTES> = {
  listStreamEntries: (asked, kernel) =>
    on(asked, kernel, async (parts) => {
      const { limit = LIMITS.pageDefault, cursor } = asked.query;
      if (cursor !== undefined && !ENTRY_ID.test(cursor))
        throw refusalOf("invalid_query", "cursor", "must be the id of an entry");
      const data = await readDead(parts.redis, parts.stream, cursor, limit);
      const next_cursor = data.length === limit ? (data.at(-1)?.id ?? null) : null;
      return json(200, { stream: parts.stream, total: await lengthOf(parts), data: data.map(shown), next_cursor });
    }),
  getStreamEntry: (asked, kernel) =>
    on(asked, kernel, async ({ redis, stream }) => {
      const { id } = asked.params;
      const entry = ENTRY_ID.test(id) ? await findDead(redis, stream, id) : null;
      if (!entry) throw refused("entry_not_found", `${stream} has no entry ${id}`);
      return json(200, { ...shown(entry), fields: entry.fields });
    }),
  replayStream: (asked, kernel) =>
    on(asked, kernel, async (parts) => {
      const { ids, limit = STREAM_ENTRIES_MAX, dryRun: dry_run = false } = asked.body;
      const wrong = ids?.find((id) => !ENTRY_ID.test(id));
      if (wrong !== undefined) throw refusalOf("invalid_request", "ids", `must be ids of entries, and ${wrong} is none`);
      const selected = ids?.length ?? (await readDead(parts.redis, parts.stream, undefined, limit)).length;
      const none = { done: 0, skipped: 0, errors: [] };
      const { done, skipped, errors } = dry_run ? none : await replayDead(parts, ids ? { ids } : { limit });
      return json(200, { dry_run, selected, replayed: done, skipped, errors });
    }),
  archiveStream: (asked, kernel) => on(asked, kernel, archiving(null, asked.body.dryRun ?? false)),
  trimStream: (asked, kernel) => on(asked, kernel, archiving(asked.body.maxLen ?? STREAM_LENGTH, asked.body.dryRun ?? false)),
};
