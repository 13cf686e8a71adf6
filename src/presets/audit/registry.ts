/**
 * The one registry of audit types: name, path, topics, and the least that `data` must hold. Client, endpoints, worker, metrics
 * and documents read it, so that a type cannot be called one thing here and another there.
 */
import { z } from "zod";

export const AUDIT_PATH = "/api/v1/audit";
/** What the server accepted and could not store at once; its worker writes it to the audit seam. */
export const AUDIT_NAMESPACE = "audit";
/** What a producer could not hand to the server at once. Another namespace, so that both may share one store. */
export const AUDIT_CLIENT_NAMESPACE = "audit-write";
/** The topic, in either namespace, whose messages are records that do not fit. */
export const QUARANTINE = "quarantine";

export interface AuditKind {
  /** Also the last part of its path and of its topics. */
  readonly type: string;
  /** Whose records these are. */
  readonly producer: string;
  /** What `data` must have. */
  readonly least: Readonly<Record<string, z.ZodType>>;
  /** Other names that the seed uses for it. */
  readonly aliases: readonly string[];
}

/** What a check says of a value that is not there, and of one that is wrong. */
const orMissing = (wrong: string) => ({
  error: ({ input }: { readonly input?: unknown }) => (input === undefined ? "is missing" : wrong),
});
const NO_TEXT = "must be a text that is not empty";
const TEXT = z.string(orMissing(NO_TEXT)).min(1, NO_TEXT);
const NUMBER = z.number(orMissing("must be a number"));
const SHARE = NUMBER.min(0, "must be from 0 to 1").max(1, "must be from 0 to 1");

const kind = <T extends string, L extends AuditKind["least"]>(type: T, producer: string, least: L, ...aliases: string[]) =>
  ({ type, producer, least, aliases }) as const;

export const AUDIT_TYPES = [
  kind("orchestration", "remediation orchestrator", { phase: TEXT }, "remediation_orchestration"),
  kind("signal-processing", "remediation processor", { fingerprint: TEXT }, "signal_processing"),
  kind("ai-decisions", "AI analysis", { fingerprint: TEXT, confidence: SHARE }, "ai_decisions", "ai_analysis", "ai-analysis"),
  kind("executions", "workflow execution", { workflow: TEXT }, "workflow_execution", "workflow-execution"),
  kind("notifications", "notification", { channel: TEXT }, "notification"),
  kind("effectiveness", "effectiveness monitor", { score: NUMBER }, "effectiveness_monitor"),
] as const satisfies readonly AuditKind[];

export type AuditType = (typeof AUDIT_TYPES)[number]["type"];

/** The registered type of a name or an alias; null: nobody registered it. */
export function auditKind(name: string): (typeof AUDIT_TYPES)[number] | null {
  return AUDIT_TYPES.find(({ type, aliases }) => type === name || aliases.includes(name)) ?? null;
}

/** All topics of a namespace that a record may be a message of. */
export function auditTopicNames(namespace: string): string[] {
  return [...AUDIT_TYPES.map(({ type }) => type), QUARANTINE].map((name) => `${namespace}/${name}`);
}
