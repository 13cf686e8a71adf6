/**
 * From an HTTP answer to an outcome: what the sinks on HTTP share. The status decides; the body only explains.
 */
import { type Outcome } from "../message/outcome.ts";
import type { SinkConfig } from "../message/topic.ts";
import type { Answer } from "./exchange.ts";
export type StatusMap = NonNullable<SinkConfig["statusMap"]>;
export type Verdict = StatusMap[string] | "disable";
/** What a status means to an http sink unless its statusMap says otherwise. */
export declare function httpVerdict(status: number): Verdict;
/** Turns an answer into an outcome; `verdictOf` is where the sinks on HTTP differ. */
export declare function outcomeOfAnswer(answer: Answer, verdictOf: (status: number) => Verdict, wallMs: number): Outcome;
