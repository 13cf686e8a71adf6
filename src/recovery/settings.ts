/** What can be set about the engine, with its defaults; beside them the variables of the environment, which the server reads. */
import type { TopicDefinition } from "../message/topic.ts";
import { CONFIDENCE_GATES } from "./confidence/gates.ts";

const HOUR_MS = 3_600_000;

const DEFAULTS = {
  /** RECOVERY_EVALUATOR_ENABLED: false leaves evaluations waiting in their topic; failures are grouped all the same. */
  evaluatorEnabled: true,
  /** RECOVERY_AUTO_EXECUTE */
  autoExecute: false,
  /** RECOVERY_MIN_CONFIDENCE: below it nothing is suggested. */
  minConfidence: CONFIDENCE_GATES.select as number,
  /** RECOVERY_RULE_DEBUG: an event with every rule's result for each evaluation. */
  ruleDebug: false,
  /** Executions that begin without a person, over all groups. */
  autoExecutionsPerHour: 10,
  /** Of the executions that begin without a person in a day, this share may try another safe action to learn about it; 0: none. */
  autoExploreShare: 0.1,
  /** A group with more open messages waits for a person. */
  autoMessagesMax: 1_000,
  /** How long an approval stands. Long enough for the second person, short enough that it is about today's failure. */
  approvalMs: 24 * HOUR_MS,
  /** How long a rejected suggestion rests before the next occurrence may bring it up again. */
  rejectedRestMs: 24 * HOUR_MS,
  /** How long a process may take between the claim of an execution and its redrive; then nobody knows what happened. */
  executionLeaseMs: 60_000,
  /** For code of a registered action; always shorter than the lease. */
  runTimeoutMs: 30_000,
  /** A message whose attempt of this number fails in this process is ingested before it is dead. */
  failingOften: 5,
  /** MAKEGOOD_APP_VERSION: of the program whose messages die here; a group resolved in a version is brought back by it or a later one. */
  appVersion: null as string | null,
  /** How often dead letters are looked for when no event tells of them. */
  pollMs: 1_000,
};

export type RecoverySettings = Readonly<typeof DEFAULTS>;

/** What a program may say; absent members are the defaults. */
export interface RecoveryOptions extends Partial<RecoverySettings> {
  /** Of the topic `recovery/evaluate`: the seed's M10_* variables are names of these. */
  readonly evaluate?: Partial<Pick<TopicDefinition, "leaseMs" | "retry">> | undefined;
}

export function withDefaults(options: Partial<RecoverySettings> = {}): RecoverySettings {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...DEFAULTS, ...Object.fromEntries(given) };
}
