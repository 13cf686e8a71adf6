/**
 * The one registry of audit types: name, path, topics, and the least that `data` must hold. Client, endpoints, worker, metrics
 * and documents read it, so that a type cannot be called one thing here and another there.
 */
import { z } from "zod";
import { MakegoodError } from "../../message/errors.ts";
import type { StandardSchemaV1 } from "../../message/standard-schema.ts";

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
  /** Of a type of the user's own: what else `data` is checked by. It must answer at once. */
  readonly schema?: StandardSchemaV1 | undefined;
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

/** A type of the user's own; `data` must have these members, each of this kind, and satisfy the schema. */
export interface NewAuditType {
  /** Lower-case letters and hyphens. */
  readonly type: string;
  readonly producer?: string | undefined;
  readonly data?: Readonly<Record<string, keyof typeof WORDS>> | undefined;
  readonly schema?: StandardSchemaV1 | undefined;
}

const WORDS = { text: TEXT, number: NUMBER, share: SHARE, flag: z.boolean(orMissing("must be true or false")) } as const;
const NAME = /^[a-z]+(?:-[a-z]+)*$/;
/** What the addresses beside those of the types are called. */
const TAKEN = [QUARANTINE, "records", "holds", "export"];

/** Of this process: every one that writes, serves or works registers the same types when it starts. */
const kinds: AuditKind[] = [...AUDIT_TYPES];

export const auditKinds = (): readonly AuditKind[] => kinds;

/** Before `auditTopics`, which declares a topic for each. The same type again takes the place of the one before; the shipped ones stay. */
export function registerAuditType({ type, producer = type, data = {}, schema }: NewAuditType): void {
  const fault = typeFault(type, data);
  if (fault !== null) throw new MakegoodError("invalid_config", `audit type ${JSON.stringify(type)}: ${fault}`);
  const least = Object.fromEntries(Object.entries(data).map(([name, word]) => [name, WORDS[word]]));
  const made = { type, producer, least, schema, aliases: [] };
  const at = kinds.findIndex((one) => one.type === type);
  if (at < 0) kinds.push(made);
  else kinds[at] = made;
}

function typeFault(type: unknown, data: object): string | null {
  if (typeof type !== "string" || !NAME.test(type) || type.length > 50)
    return "its name must be lower-case letters with hyphens between, at most 50";
  if (TAKEN.includes(type)) return "that name is taken";
  if (AUDIT_TYPES.some((one) => one.type === type || (one.aliases as readonly string[]).includes(type)))
    return "it is one of those shipped";
  const wrong = Object.entries(data).find(([, word]) => !Object.hasOwn(WORDS, word as string));
  return wrong ? `data.${wrong[0]} must be one of ${Object.keys(WORDS).join(", ")}` : null;
}

/** The registered type of a name or an alias; null: nobody registered it. */
export function auditKind(name: string): AuditKind | null {
  return kinds.find(({ type, aliases }) => type === name || aliases.includes(name)) ?? null;
}

/** All topics of a namespace that a record may be a message of. */
export function auditTopicNames(namespace: string): string[] {
  return [...kinds.map(({ type }) => type), QUARANTINE].map((name) => `${namespace}/${name}`);
}
