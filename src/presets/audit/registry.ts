/**
 * The one registry of audit types: name, path, topics, and the least that `data` must hold. Client, endpoints, worker, metrics
 * and documents read it, so that a type cannot be called one thing here and another there (DA-20).
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

export const AUDIT_TYPES = [
  {
    type: "orchestration",
    producer: "remediation orchestrator",
    minimum: [text("phase")],
    aliases: ["remediation_orchestration"],
  },
  {
    type: "signal-processing",
    producer: "remediation processor",
    minimum: [text("fingerprint")],
    aliases: ["signal_processing"],
  },
  {
    type: "ai-decisions",
    producer: "AI analysis",
    minimum: [text("fingerprint"), number("confidence", 0, 1)],
    aliases: ["ai_decisions", "ai_analysis", "ai-analysis"],
  },
  {
    type: "executions",
    producer: "workflow execution",
    minimum: [text("workflow")],
    aliases: ["workflow_execution", "workflow-execution"],
  },
  { type: "notifications", producer: "notification", minimum: [text("channel")], aliases: ["notification"] },
  { type: "effectiveness", producer: "effectiveness monitor", minimum: [number("score")], aliases: ["effectiveness_monitor"] },
] as const satisfies readonly AuditKind[];

export type AuditType = (typeof AUDIT_TYPES)[number]["type"];

const BY_NAME: ReadonlyMap<string, AuditKind & { readonly type: AuditType }> = new Map(
  AUDIT_TYPES.flatMap((kind) => [kind.type, ...kind.aliases].map((name) => [name, kind] as const)),
);

/** The registered type of a name or an alias; null: nobody registered it. */
export function auditKind(name: string): (AuditKind & { readonly type: AuditType }) | null {
  return BY_NAME.get(name) ?? null;
}
