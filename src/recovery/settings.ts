/**
 * What can be set about the engine, with its defaults. The names of the environment's variables stand beside what they set; the
 * server reads them.
 */
import type { TopicDefinition } from "../message/topic.ts";
import { CONFIDENCE_GATES } from "./confidence/gates.ts";

/** What a program may say; absent members are the defaults. */
export interface RecoveryOptions extends Partial<RecoverySettings> {
  /** Of the topic `recovery/evaluate`: the seed's M10_* variables are names of these. */
  readonly evaluate?: Partial<Pick<TopicDefinition, "leaseMs" | "retry">> | undefined;
}

export interface RecoverySettings {
  /** RECOVERY_EVALUATOR_ENABLED: false leaves evaluations waiting in their topic; failures are grouped all the same. */
  readonly evaluatorEnabled: boolean;
  /** RECOVERY_AUTO_EXECUTE */
  readonly autoExecute: boolean;
  /** RECOVERY_MIN_CONFIDENCE: below it nothing is suggested. */
  readonly minConfidence: number;
  /** RECOVERY_RULE_DEBUG: an event with every rule's result for each evaluation. */
  readonly ruleDebug: boolean;
  /** Executions that begin without a person, over all groups. */
  readonly autoExecutionsPerHour: number;
  /** Of the executions that begin without a person in a day, this share may try another safe action to learn about it; 0: none. */
  readonly autoExploreShare: number;
  /** A group with more open messages waits for a person. */
  readonly autoMessagesMax: number;
  /** How long an approval stands. Long enough for the second person, short enough that it is about today's failure. */
  readonly approvalMs: number;
  /** How long a rejected suggestion rests before the next occurrence may bring it up again. */
  readonly rejectedRestMs: number;
  /** How long a process may take between the claim of an execution and its redrive; then nobody knows what happened. */
  readonly executionLeaseMs: number;
  /** For code of a registered action; always shorter than the lease. */
  readonly runTimeoutMs: number;
  /** A message whose attempt of this number fails in this process is ingested before it is dead. */
  readonly failingOften: number;
  /** MAKEGOOD_APP_VERSION: of the program whose messages die here; a group resolved in a version is brought back by it or a later one. */
  readonly appVersion: string | null;
  /** How often dead letters are looked for when no event tells of them. */
  readonly pollMs: number;
}

const HOUR_MS = 3_600_000;

export const RECOVERY_DEFAULTS: RecoverySettings = {
  evaluatorEnabled: true,
  autoExecute: false,
  minConfidence: CONFIDENCE_GATES.select,
  ruleDebug: false,
  autoExecutionsPerHour: 10,
  autoExploreShare: 0.1,
  autoMessagesMax: 1_000,
  approvalMs: 24 * HOUR_MS,
  rejectedRestMs: 24 * HOUR_MS,
  executionLeaseMs: 60_000,
  runTimeoutMs: 30_000,
  failingOften: 5,
  appVersion: null,
  pollMs: 1_000,
};

export function withDefaults(options: Partial<RecoverySettings> = {}): RecoverySettings {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...RECOVERY_DEFAULTS, ...Object.fromEntries(given) };
}
