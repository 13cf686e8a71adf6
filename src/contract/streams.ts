/** Dead letters of the Redis streams over HTTP: what there is, replay, archive, and trim after that. */
import { z } from "zod";
import { body, routes, shows, takes } from "./route.ts";
import * as v from "./values.ts";

export const STREAM_ENTRIES_MAX = 1_000;
export const STREAM_LENGTH = 10_000;

const entry = {
  id: z.string(),
  kind: z
    .enum(["dead_letter", "refused"])
    .describe("dead_letter: a copy of one in the store; refused: nowhere else until it is archived"),
  ...v.texts("code", "reason"),
  message_id: z.string().nullable(),
  generation: z.int(),
  ...v.fields(z.string().nullable(), "stream", "entry_id"),
};
const page = v.shape("StreamEntries", {
  stream: z.string(),
  total: z.int(),
  data: z.array(z.strictObject(entry)),
  next_cursor: z.string().nullable(),
});
const whole = v.shape("StreamEntry", { ...entry, fields: z.record(z.string(), z.string()) });

const errors = z.array(z.strictObject(v.texts("id", "error")));
const replayed = v.shape("StreamReplay", {
  dry_run: z.boolean(),
  ...v.integers("selected", "replayed"),
  skipped: z.int().describe("replayed or settled before, or gone"),
  errors,
});
const archived = v.shape("StreamArchive", {
  dry_run: z.boolean(),
  ...v.integers("length", "selected", "archived"),
  skipped: z.int().describe("archived before"),
  trimmed: z.int(),
  errors,
});

const limit = v.integer(1, STREAM_ENTRIES_MAX).describe("how many at most");
const dryRun = { dry_run: v.flag().describe("say how many, and change nothing") };
const which = {
  ids: v.list(v.text(), STREAM_ENTRIES_MAX, "entries").describe("these entries; absent: the oldest"),
  limit,
  ...dryRun,
};
const length = { max_len: v.integer(0, Number.MAX_SAFE_INTEGER).describe(`how many may stay; absent: ${STREAM_LENGTH}`) };

export const STREAM_ROUTES = routes({
  listStreamEntries: shows("Entries of a stream of dead letters, the oldest first", page, {
    query: v.object(v.optionals({ limit, cursor: v.text().describe("go on after this entry") })),
  }),
  getStreamEntry: shows("One entry with its fields", whole, { errors: ["entry_not_found"] }),
  replayStream: takes("operate", "Replay entries, each once", replayed, body("recovery", v.object(v.optionals(which)))),
  archiveStream: takes(
    "operate",
    "Archive every entry that is not archived yet: as a dead letter of the store, or in a file where Redis is the store",
    archived,
    body("intervention", v.object(v.optionals(dryRun))),
  ),
  trimStream: takes(
    "operate",
    "Archive the oldest entries beyond a length, then delete what is archived",
    archived,
    body("intervention", v.object(v.optionals({ ...length, ...dryRun }))),
  ),
});
