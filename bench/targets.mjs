// What the results are held to, as data.

/** The stores that the settlement preset is measured on. */
export const settlementStores = ["redis-everysec", "redis-always", "postgres-store"];

const settlementTargets = [
  { metric: "settlement_put_p99", atMost: 5 },
  { metric: "settlement_ready_p99", atMost: 10 },
  { metric: "settlement_seeds_put_p99", atMost: 5, not: "postgres-store" },
  { metric: "settlement_seeds_ready_p99", atMost: 10, not: "postgres-store" },
  { metric: "settlement_overhead_p99", atMost: 2 },
  { metric: "settlement_overhead_p50" },
  { metric: "settlement_health_p99", atMost: 100 },
];

/**
 * `ratio`: ours / theirs in the same round. `inverse`: theirs / ours, where less is better. `own`: our own number.
 * `theirs`: another metric of the peer, asked in the same round. `ours`: whose number it is, where it is not that of Makegood on PostgreSQL.
 */
export const targets = [
  { metric: "transaction", kind: "ratio", against: "pgboss", atLeast: 3 },
  { metric: "transaction", kind: "ratio", against: "graphile", atLeast: 3 },
  { metric: "transaction", kind: "ratio", against: "raw", atLeast: 0.8 },
  { metric: "callers16", kind: "ratio", against: "pgboss", atLeast: 8 },
  { metric: "callers16", kind: "ratio", against: "bullmq", atLeast: 0.9 },
  { metric: "bulk", kind: "ratio", against: "graphile", atLeast: 1.7 },
  { metric: "bulk", kind: "ratio", against: "raw", atLeast: 0.8 },
  { metric: "drain1", kind: "ratio", against: "graphile", atLeast: 2.4 },
  { metric: "drain1", kind: "ratio", against: "pgboss", atLeast: 3 },
  { metric: "drain1", kind: "ratio", against: "bullmq", atLeast: 5 },
  { metric: "drain2", kind: "ratio", against: "graphile", atLeast: 1.8 },
  { metric: "drain2", kind: "ratio", against: "pgboss", atLeast: 3 },
  { metric: "drain2", kind: "ratio", against: "bullmq", atLeast: 5 },
  { metric: "latency_p50", kind: "inverse", against: "graphile", atLeast: 1 },
  { metric: "latency_p50", kind: "inverse", against: "pgboss", atLeast: 1 },
  { metric: "latency_p99", kind: "inverse", against: "graphile", atLeast: 1 },
  { metric: "latency_p99", kind: "inverse", against: "pgboss", atLeast: 1 },
  { metric: "depth_ratio", kind: "own", atLeast: 0.9 },
  { metric: "longtx_ratio", kind: "own", atLeast: 0.95 },
  { metric: "history_ratio", kind: "own", atLeast: 0.9 },
  { metric: "cpu", kind: "own", atMost: 18 },
  { metric: "longtx_end_ratio", kind: "own" },
  { metric: "sequential", kind: "ratio", against: "raw" },
  { metric: "sequential", kind: "ratio", against: "pgboss" },
  { metric: "sequential", kind: "ratio", against: "graphile" },
  { metric: "sequential", kind: "ratio", against: "bullmq" },
  { metric: "drain1", kind: "ratio", against: "raw" },
  { metric: "drain2", kind: "ratio", against: "raw" },
  { metric: "http_rate", kind: "ratio", against: "undici", atLeast: 0.7 },
  { metric: "http_cpu", kind: "own", atMost: 200 },
  { metric: "http_p99", kind: "ratio", against: "raw", theirs: "latency_p99", atMost: 3 },
  { ours: "serve", metric: "accept_1", kind: "ratio", against: "bare-http", atLeast: 0.75 },
  { ours: "serve", metric: "accept_16", kind: "ratio", against: "bare-http", atLeast: 1 },
  { ours: "serve", metric: "accept_64", kind: "ratio", against: "bare-http", atLeast: 1.4 },
  { ours: "serve", metric: "accept_256", kind: "ratio", against: "bare-http", atLeast: 1.5 },
  { ours: "serve", metric: "accept_p99_64", kind: "inverse", against: "bare-http", atLeast: 1 },
  { ours: "serve", metric: "accept_p99_256", kind: "inverse", against: "bare-http", atLeast: 1 },
  { ours: "serve", metric: "accept_delivered_ratio", kind: "own", atLeast: 0.5 },
  { ours: "makegood-redis", metric: "redis_callers16", kind: "ratio", against: "raw-redis", atLeast: 0.7 },
  { ours: "makegood-redis", metric: "redis_drain", kind: "ratio", against: "bullmq", atLeast: 2 },
  { ours: "makegood-redis", metric: "redis_callers16", kind: "ratio", against: "bullmq" },
  { ours: "makegood-redis", metric: "redis_sequential", kind: "ratio", against: "raw-redis" },
  { ours: "makegood-redis", metric: "redis_bulk", kind: "ratio", against: "raw-redis" },
  { ours: "makegood-redis", metric: "redis_drain", kind: "ratio", against: "raw-redis" },
  ...settlementTargets.flatMap(({ not, ...target }) =>
    settlementStores.filter((ours) => ours !== not).map((ours) => ({ ...target, kind: "own", ours })),
  ),
];

/** In the order of the table of medians. */
export const metrics = {
  transaction: "transactional enqueue, 16 connections, tx/s",
  sequential: "enqueue, sequential, messages/s",
  callers16: "enqueue, 16 concurrent callers, messages/s",
  bulk: "bulk enqueue, 1000 × 4, messages/s",
  drain1: "drain 100k, one process, messages/s",
  drain2: "drain 100k, two processes, messages/s",
  cpu: "worker CPU per message, µs",
  latency_p50: "latency at 50/s, p50, ms",
  latency_p99: "latency at 50/s, p99, ms",
  depth_shallow: "60k backlog, messages/s",
  depth_deep: "first 60k of a 1M backlog, messages/s",
  depth_ratio: "first 60k of a 1M backlog against a 60k backlog",
  longtx_ratio: "end rate / start rate of 200k under a long open transaction",
  longtx_control: "the same without the long open transaction",
  longtx_end_ratio: "end rate under a long open transaction / end rate without (no warm-up in it)",
  longtx_rate: "whole drain under a long open transaction, messages/s",
  longtx_control_rate: "whole drain without it, messages/s",
  history_empty: "drain of 100k, empty history, messages/s",
  history_after: "drain of 100k after 1M delivered, messages/s",
  history_ratio: "drain after 1M delivered, against an empty history",
  http_rate: "HTTP delivery of a backlog, concurrency 50, messages/s",
  http_cpu: "HTTP delivery, worker CPU per message, µs",
  http_p50: "HTTP, call to arrival at 50/s, p50, ms",
  http_p99: "HTTP, call to arrival at 50/s, p99, ms",
};

/** The same of the question `accept`. */
export const acceptMetrics = {
  accept_1: "accept over HTTP, one caller, messages/s",
  accept_16: "accept over HTTP, 16 callers, messages/s",
  accept_64: "accept over HTTP, 64 callers, messages/s",
  accept_256: "accept over HTTP, 256 callers, messages/s",
  accept_p99_1: "accept over HTTP, one caller, p99, ms",
  accept_p99_16: "accept over HTTP, 16 callers, p99, ms",
  accept_p99_64: "accept over HTTP, 64 callers, p99, ms",
  accept_p99_256: "accept over HTTP, 256 callers, p99, ms",
  accept_only: "64 callers, accepted only, messages/s",
  accept_delivered: "64 callers, accepted and delivered, messages/s",
  accept_delivered_ratio: "64 callers, accepted and delivered against accepted only",
};

/** The same of the question `redis`; microseconds are those that the server spends in scripts, per message. */
export const redisMetrics = {
  redis_sequential: "put, sequential, messages/s",
  redis_callers16: "put, 16 concurrent callers, messages/s",
  redis_bulk: "bulk put, 1000 × 4, messages/s",
  redis_drain: "drain 100k, one process, messages/s",
  redis_sequential_us: "put, sequential, server time in scripts, µs",
  redis_callers16_us: "put, 16 concurrent callers, server time in scripts, µs",
  redis_bulk_us: "bulk put, server time in scripts, µs",
  redis_drain_us: "drain, server time in scripts, µs",
  redis_drain_cpu: "drain, worker CPU per message, µs",
};

/** The same of the question `settlement`. */
export const settlementMetrics = {
  settlement_put_p50: "put, p50, ms",
  settlement_put_p99: "put, p99, ms",
  settlement_ready_p50: "ready (claim of 50), p50, ms",
  settlement_ready_p99: "ready (claim of 50), p99, ms",
  settlement_seeds_put_p50: "seeds' port: put, p50, ms",
  settlement_seeds_put_p99: "seeds' port: put, p99, ms",
  settlement_seeds_ready_p50: "seeds' port: getReady of 50, p50, ms",
  settlement_seeds_ready_p99: "seeds' port: getReady of 50, p99, ms",
  settlement_bare_p50: "bare signed POST, p50, ms",
  settlement_bare_p99: "bare signed POST, p99, ms",
  settlement_finalize_p50: "finalize(), p50, ms",
  settlement_finalize_p99: "finalize(), p99, ms",
  settlement_overhead_p50: "what finalize() adds, p50, ms",
  settlement_overhead_p99: "what finalize() adds, p99, ms",
  settlement_health_p50: "health, p50, ms",
  settlement_health_p99: "health, p99, ms",
};
