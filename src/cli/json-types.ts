/**
 * What the addresses answer, by the names that the commands use.
 */
import type { AnswerOf } from "../contract/table.ts";

export interface ListJson<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
}
export type RedriveJson = AnswerOf<"getRedrive">;
export type RedriveItemJson = AnswerOf<"listRedriveItems">["data"][number];
export type TopicJson = AnswerOf<"getTopic">;
export type CandidateDetailJson = AnswerOf<"getCandidate">;
export type CandidateJson = AnswerOf<"listCandidates">["data"][number];
export type GroupJson = AnswerOf<"listGroups">["data"][number];
export type OccurrenceJson = AnswerOf<"listOccurrences">["data"][number];
export type BlastRadiusJson = CandidateDetailJson["blast_radius"];
export type EvaluateJson = AnswerOf<"evaluateFailure">;
export type GroupRuleJson = AnswerOf<"listGroupRules">["data"][number];
export type ActionJson = AnswerOf<"getAction">;
type Detail = AnswerOf<"getMessage">;
export type AttemptJson = Detail["timeline"][number];
export type ProvenanceJson = Detail["provenance"][number];
export type MessageJson = Omit<Detail, "payload" | "timeline" | "provenance">;
