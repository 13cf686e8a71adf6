/** Maintenance jobs and the archive over HTTP: what there is, one bounded run of a job, and what retention took away. */
import { z } from "zod";
import { LIMITS } from "../message/limits.ts";
import { body, lists, listsAll, route, routes, shows, takes } from "./route.ts";
import * as v from "./values.ts";

const job = v.shape("Job", {
  ...v.texts("name", "about"),
  every_ms: z.number(),
  where: z.enum(["each", "leader"]).describe("each: in every worker; leader: in one of them"),
  dry_run: z.boolean().describe("whether it can show what it would do"),
});

const report = v.shape("JobReport", {
  name: z.string(),
  result: z.enum(["done", "skipped", "stopped", "failed"]).describe("skipped: another process is at it"),
  dry_run: z.boolean(),
  ms: z.number(),
  counts: z.record(z.string(), z.number()),
  more: z.boolean().describe("a run is bounded: there is more to do"),
  notes: z.array(z.string()),
  error: z.string().nullable(),
});

const how = v.object(
  v.optionals({
    batch_size: v.integer(1, LIMITS.batchMessagesMax).describe("how many at once"),
    dry_run: v.flag().describe("show what would happen, and change nothing"),
    skip_leader_election: v.flag().describe("run beside whatever else runs"),
  }),
);

const chunk = v.shape("ArchiveChunk", {
  id: z.int(),
  ...v.texts("class", "at", "first_id", "last_id", "sha256", "place"),
  rows: z.int(),
  bytes: z.int(),
  sealed: z.boolean(),
});

const verified = v.shape("ArchiveVerified", {
  ...v.fields(z.int(), "chunks", "rows", "whole", "unread"),
  faults: z.array(z.strictObject({ id: z.int(), ...v.texts("class", "fault") })),
});

const NDJSON = { type: "application/x-ndjson" };

export const OPERATION_ROUTES = routes({
  listJobs: listsAll("The maintenance jobs that can be run by hand", job),
  runJob: takes("operate", "One bounded run of a job", report, body("intervention", how), "invalid_request"),
  listArchives: lists("Chunks of the archive, oldest first", chunk, { class: v.text() }, ["needs_postgres"]),
  readArchive: route("read", "The records of a chunk, a JSON object a line, checked", NDJSON, {
    errors: ["needs_postgres", "invariant_violated"],
  }),
  verifyArchive: shows("Whether every chunk is there and as it was written", verified, { errors: ["needs_postgres"] }),
});
