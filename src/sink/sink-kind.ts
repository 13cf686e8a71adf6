/**
 * What a kind of sink says about itself: which settings it takes, what it checks on its own, and how it is made of a stored
 * configuration. Each kind's file exports one of these, and kinds.ts lists them.
 */
import type { SinkConfig } from "../message/topic.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { AddressGuard } from "./address-guard.ts";
import type { Sink } from "./sink.ts";

/** Settings that only some kinds take, and how a refusal names one; every other setting is for all of them. */
export const KIND_SETTINGS = { url: "a url", secrets: "at least one secret", statusMap: "a statusMap" } as const;
export type KindSetting = keyof typeof KIND_SETTINGS;

/** One reason why a configuration is refused. */
export interface SinkFault {
  /** The setting, or a member of it (`statusMap.409`), which `detail` is about; null: `detail` is a whole sentence. */
  readonly field: string | null;
  readonly detail: string;
}

/** Takes one line without control characters. */
export type LogLine = (line: string) => void;

export interface SinkDeps {
  readonly guard: AddressGuard;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: LogLine;
}

export interface SinkKindDefinition {
  /** What is not named here is refused. */
  readonly takes: Readonly<Partial<Record<KindSetting, "needed" | "allowed">>>;
  /** What is wrong with the settings that are this kind's own. They are there if they are needed, and of any type. */
  readonly check?: (config: SinkConfig) => Iterable<SinkFault>;
  /** Called with what passed every check. Null: it lives in the code that declares it, and no configuration makes one. */
  readonly create: ((config: SinkConfig, deps: SinkDeps) => Sink) | null;
}

export function faultText({ field, detail }: SinkFault): string {
  return field === null ? detail : `${field} ${detail}`;
}
