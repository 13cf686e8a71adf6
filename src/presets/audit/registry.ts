/**
 * The one registry of audit types: name, path, topics, and the least that `data` must hold. Client, endpoints, worker, metrics
 * and documents read it, so that a type cannot be called one thing here and another there.
 */

export const AUDIT_PATH = "/api/v1/audit";
/** What the server accepted and could not store at once; its worker writes it to the audit seam. */
export const AUDIT_NAMESPACE = "audit";
/** What a producer could not hand to the server at once. Another namespace, so that both may share one store. */
export const AUDIT_CLIENT_NAMESPACE = "audit-write";
/** The topic, in either namespace, whose messages are records that do not fit. */
export const QUARANTINE = "quarantine";

/** A member that `data` must have. */
export interface Minimum {
  readonly name: string;
  readonly kind: "text" | "number";
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

export interface AuditKind {
  /** Also the last part of its path and of its topics. */
  readonly type: string;
  /** Whose records these are. */
  readonly producer: string;
  readonly minimum: readonly Minimum[];
  /** Other names that the seed uses for it. */
  readonly aliases: readonly string[];
}

const text = (name: string): Minimum => ({ name, kind: "text" });
const number = (name: string, min?: number, max?: number): Minimum => ({ name, kind: "number", min, max });
const kind = <T extends string>(type: T, producer: string, minimum: readonly Minimum[], ...aliases: string[]) =>
  ({ type, producer, minimum, aliases }) as const;

export const AUDIT_TYPES = [
  kind("orchestration", "remediation orchestrator", [text("phase")], "remediation_orchestration"),
  kind("signal-processing", "remediation processor", [text("fingerprint")], "signal_processing"),
  kind(
    "ai-decisions",
    "AI analysis",
    [text("fingerprint"), number("confidence", 0, 1)],
    "ai_decisions",
    "ai_analysis",
    "ai-analysis",
  ),
  kind("executions", "workflow execution", [text("workflow")], "workflow_execution", "workflow-execution"),
  kind("notifications", "notification", [text("channel")], "notification"),
  kind("effectiveness", "effectiveness monitor", [number("score")], "effectiveness_monitor"),
] as const satisfies readonly AuditKind[];

export type AuditType = (typeof AUDIT_TYPES)[number]["type"];

/** The registered type of a name or an alias; null: nobody registered it. */
export function auditKind(name: string): (typeof AUDIT_TYPES)[number] | null {
  return AUDIT_TYPES.find(({ type, aliases }) => type === name || aliases.includes(name)) ?? null;
}
