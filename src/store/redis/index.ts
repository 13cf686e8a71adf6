/**
 * The door `makegood/redis`: the store, the port to a client library, what is known of the server's durability,
 * the seeds' port, and streams as inlet and outlet.
 */
export { type ConnectOptions, connectRedis } from "./connect.ts";
export type {
  DLQAlarm,
  DLQClaim,
  DLQEntry,
  DLQGauges,
  DLQOperations,
  DLQPort,
  DLQStore,
  NewDLQEntry,
  NextAttempt,
  PersistenceCheck,
  PutOptions,
  PutResult,
  Quarantined,
  TerminalRecord,
} from "./dlq-port/dlq-store.ts";
export { createMemoryDLQStore, type MemoryDLQStoreOptions, portOver } from "./dlq-port/port.ts";
export { createRedisDLQStore, type RedisDLQStoreOptions } from "./dlq-port/redis-dlq-store.ts";
export {
  type Attestation,
  type NodeDurability,
  type RedisDurability,
  readDurability,
  requireNoEviction,
  survivesOf,
} from "./durability.ts";
export { examineRedis } from "./examine.ts";
export type { Finding, Verdict } from "./finding.ts";
export type { IoredisClient } from "./ioredis.ts";
export type { NodeRedisClient } from "./node-redis.ts";
export { fromIoredis, fromNodeRedis, type PortOptions, type RedisPort, type SendOptions } from "./port.ts";
export { createRedisStore, type RedisStore, type RedisStoreOptions } from "./redis-store.ts";
export {
  archiveDead,
  type DeadEntry,
  type DeadStreamParts,
  findDead,
  REFUSED_TOPIC,
  REPLAY_MAX,
  type Replaying,
  readDead,
  replayDead,
  TRIM_LENGTH,
  trimDead,
  type Worked,
} from "./streams/dead-stream.ts";
export { deadStreamOf, type StreamDoors, type StreamDoorsOptions, type StreamNotice, startStreamDoors } from "./streams/doors.ts";
export type { StreamEntry } from "./streams/entries.ts";
export type { Depth } from "./streams/group.ts";
export { type Inlet, startInlet } from "./streams/inlet.ts";
export type { InletMessage, InletNotice, InletOptions, Malformed } from "./streams/inlet-options.ts";
export { type Outlet, type OutletNotice, type OutletOptions, startOutlet } from "./streams/outlet.ts";
export { AUDIT_CLASS_STREAMS, AUDIT_STREAM, fieldOf, RECOVERY_STREAM } from "./streams/seed-names.ts";
export { checkReclaim, type ReclaimRules, reclaimSpanMs } from "./streams/takeover.ts";
export type { RedisArgument, RedisNode } from "./wire.ts";
