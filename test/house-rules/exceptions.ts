/**
 * Every exception to a house rule, with its reason. A rule has none of its own: another one is a line here that is
 * defended in review.
 */

export interface Exception {
  readonly rule: string;
  /** A file, or a folder when it ends with a slash. */
  readonly path: string;
  /** What the rule complains of: the banned call or word. Absent: whatever it is. */
  readonly what?: string;
  readonly reason: string;
}

const TIME = ["Date.now", "new Date()", "performance.now", "process.hrtime"];
const TIMERS = ["setTimeout", "setInterval", "setImmediate", "AbortSignal.timeout", "node:timers"];
const RANDOMNESS = ["Math.random", "randomBytes", "randomUUID", "getRandomValues"];

const each = (whats: readonly string[], path: string, reason: string): Exception[] =>
  whats.map((what) => ({ rule: "banned-call", path, what, reason }));

export const EXCEPTIONS: readonly Exception[] = [
  {
    rule: "sink-kinds",
    path: "src/testing/store-conformance/topics.ts",
    reason: "definitions that a store has to give back as they were, each with other settings",
  },
  ...each([...TIME, ...TIMERS, ...RANDOMNESS], "src/platform/", "the one door to time, timers and randomness"),
  ...each(
    ["console", "process.exit", "process.env"],
    "src/cli/",
    "the command line is where output, exit and environment belong",
  ),
  {
    rule: "import-direction",
    path: "src/server/config/settings.ts",
    reason: "takes names from the seeds' streams: through the door every command would load the whole Redis store",
  },
  {
    rule: "banned-word",
    path: "src/maintenance/",
    what: "job",
    reason: "a chore that runs every so often is not a message; `job` is its word, and only there",
  },
  ...[
    "src/evidence/evidence.ts",
    "src/evidence/seal.ts",
    "src/platform/job.ts",
    "src/message/errors.ts",
    "src/create.ts",
    "src/create/below-workers.ts",
    "src/create/maintenance-jobs.ts",
    "src/presets/stream-jobs.ts",
    "src/server/serve.ts",
    "src/create/open-recovery.ts",
    "src/create/recovery-beside.ts",
    "src/archive/ship.ts",
    "src/contract/addresses.ts",
    "src/contract/operations.ts",
    "src/server/handlers/operations.ts",
    "src/cli/commands/jobs.ts",
    "src/presets/usage/watchdog.ts",
    "src/recovery/engine.ts",
    "src/recovery/failures/own-loop.ts",
    "src/recovery/candidates/completion.ts",
    "src/recovery/groups/rolling-counts.ts",
    "src/recovery/redrive/runner.ts",
  ].map((path) => ({
    rule: "banned-word",
    path,
    what: "job",
    reason: "hands the maintenance jobs to the room that runs them",
  })),
  {
    rule: "banned-word",
    path: "src/observe/",
    what: "job",
    reason: "counts the runs of maintenance jobs",
  },
  {
    rule: "banned-word",
    path: "src/observe/table.ts",
    what: "queue",
    reason: "the seed's metrics keep the seed's names: recovery_db_queue_depth (docs/aliases.md)",
  },
  {
    rule: "banned-word",
    path: "src/presets/settlement/",
    what: "dlq",
    reason: "the seeds' client keeps the seeds' names: dlqStore, getDLQSize, dlq_size (docs/aliases.md)",
  },
  {
    rule: "banned-word",
    path: "src/store/redis/",
    what: "dlq",
    reason: "the seeds' port keeps the seeds' name, here and at the door (docs/aliases.md)",
  },
  ...["src/store/redis/node-redis.ts", "src/store/redis/ioredis.ts"].map((path) => ({
    rule: "banned-word",
    path,
    what: "queue",
    reason: "the client libraries' own option names",
  })),
  ...["ack", "nack"].map((what) => ({
    rule: "banned-word",
    path: "src/presets/usage/outbox-store.ts",
    what,
    reason: "the seed's outbox store keeps the seed's names: claim_batch, ack, nack (docs/aliases.md)",
  })),
  {
    rule: "banned-word",
    path: "src/",
    what: "queueMicrotask",
    reason: "the platform's own name",
  },
];
