/** What the server needs of the rooms behind it, as one plain object, so that the API also runs in a test or in the CLI. */
import type { Makegood } from "../create.ts";
import { DEFAULTS } from "../message/limits.ts";
import type { Log } from "../observe/log.ts";
import type { Clock } from "../platform/clock.ts";
import { createAddressGuard } from "../sink/address-guard.ts";
import { checkSink } from "../sink/check-sink.ts";
import type { Worker } from "../worker/worker.ts";
import type { Config } from "./config/config.ts";
import type { DeadStreams } from "./dead-streams.ts";
import type { SinkCheck } from "./json/topic-json.ts";

/** How often a server asks its store whether it would accept: what /health says is at most this old, and one answer. */
export const PROBE_MS = 1_000;

export interface Kernel {
  readonly mg: Makegood;
  readonly log: Log;
  readonly clock: Clock;
  readonly payloadBytesMax: number;
  readonly checkSink: SinkCheck;
  /** More open dead letters are a reason in /health. */
  readonly deadLettersMax: number;
  /** What stands before every address where another program mounts the API: `/makegood`; absent: nothing. */
  readonly basePath?: string | undefined;
  readonly worker?: Worker | null | undefined;
  /** Absent: this server has none. */
  readonly streams?: DeadStreams | undefined;
  draining(): boolean;
  /** Whether a topic that a file or code declared may be deleted all the same, because nobody declares it any more. */
  abandoned(topic: string): Promise<boolean>;
}

type Parts = Pick<Kernel, "mg" | "draining"> &
  Partial<Kernel> & { config: Pick<Config, "payload_bytes_max" | "sink_allow"> & Partial<Pick<Config, "dead_letters_max">> };

/** Log and clock are those of the Makegood and no topic is abandoned, unless said. */
export function kernelOf({ config, ...parts }: Parts): Kernel {
  const { log, clock } = parts.mg;
  const { payload_bytes_max: payloadBytesMax, dead_letters_max: deadLettersMax = DEFAULTS.deadLettersMax } = config;
  const own = { payloadBytesMax, deadLettersMax, checkSink: sinkCheck(config.sink_allow) };
  return { log, clock, abandoned: async () => false, ...own, ...parts };
}

export function sinkCheck(allow: readonly string[]): SinkCheck {
  const guard = createAddressGuard({ allow });
  return (sink) => checkSink(sink, guard);
}
