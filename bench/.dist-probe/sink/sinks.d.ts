import type { SinkConfig } from "../message/topic.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { AddressGuard } from "./address-guard.ts";
import { type LogLine } from "./notify.ts";
import type { Sink } from "./sink.ts";
export interface SinkDeps {
    readonly guard: AddressGuard;
    readonly clock: Clock;
    readonly random: Random;
    readonly log: LogLine;
}
/**
 * Throws `sink_refused` for a configuration that could never work. An address that the guard refuses is not one of
 * them: the sink is made, sends nothing and rejects each message, so that a worker outlives a change of the guard.
 */
export declare function createSink(config: SinkConfig, deps: SinkDeps): Sink;
/** All reasons why a configuration is refused at save; empty when it may be saved. Nothing in it is trusted to have its type. */
export declare function checkSink(config: SinkConfig, guard: AddressGuard): string[];
