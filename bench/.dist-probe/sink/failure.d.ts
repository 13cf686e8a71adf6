import type { Outcome } from "../message/outcome.ts";
export declare function outcomeOfFailure(thrown: unknown, sent: boolean): Outcome;
/** Cut short by the deadline or from outside. */
export declare function outcomeOfCut(sent: boolean, late: boolean, timeoutMs: number): Outcome;
