/**
 * The door `makegood/presets`: ready compositions of the kernel for what services most often promise.
 */

export { RECOVERY_TOPIC } from "../recovery/topics.ts";
export {
  createServiceSigner,
  type ServiceClaims,
  type ServiceSigner,
  type ServiceSignerOptions,
  type SigningKey,
} from "../sink/service-token.ts";
export {
  createServiceVerifier,
  type ServiceVerifier,
  type ServiceVerifierOptions,
  type Verified,
  type VerifyingKey,
} from "../sink/verify-service-token.ts";
export type { StreamEntry as AuditStreamEntry } from "../store/redis/streams/entries.ts";
export type { Turn, TurnOutcome, TurnRef, TurnSettlement, UsageStore } from "../store/usage.ts";
export { type AuditClient, type AuditClientOptions, type AuditResult, createAuditClient } from "./audit/client.ts";
export { type AuditEnvelope, type RecordFault, readRecord } from "./audit/record.ts";
export {
  AUDIT_PATH,
  AUDIT_TYPES,
  type AuditKind,
  type AuditType,
  auditKind,
  type NewAuditType,
  registerAuditType,
} from "./audit/registry.ts";
export { auditTopics } from "./audit/topics.ts";
export * from "./seed-streams.ts";
export { createSettlementClient, type SettlementClient, type SettlementCounts } from "./settlement/client.ts";
export { type Admission, type BillingHealth, billingOfCounts } from "./settlement/health.ts";
export * from "./settlement/invariants.ts";
export { MICRO_CHARS_MAX, parseMicro, type ReadAmount, readMicro } from "./settlement/money.ts";
export type { SettlementOptions } from "./settlement/options.ts";
export type { FinalizeRequest, FinalizeResult, ReplayCounts } from "./settlement/request.ts";
export { createOutboxStore, type OutboxMessage, type OutboxStore, type OutboxStoreOptions } from "./usage/outbox-store.ts";
export * from "./usage/publishers.ts";
export { type ProviderUsage, type TurnEnd, usageKey } from "./usage/settle-turn.ts";
export { type ReserveInput, snapshotSchema, type UsageSnapshot } from "./usage/snapshot.ts";
export {
  createUsage,
  type Finalized,
  type FinalizeOptions,
  type Usage,
  type UsageHealth,
  type UsageOptions,
} from "./usage/usage.ts";
export type { Watchdog, WatchdogOptions } from "./usage/watchdog.ts";
