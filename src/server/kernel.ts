/**
 * What the server needs of the rooms behind it, as one plain object: handlers are written against this, so that a test can
 * run the whole API on the memory store and the CLI can call it without a socket.
 */
import type { Makegood } from "../create.ts";
import type { Log } from "../observe/log.ts";
import type { Clock } from "../platform/clock.ts";
import type { Recovery } from "../recovery/recovery.ts";
import type { WorkerStatus } from "../worker/worker.ts";
import type { SinkCheck } from "./topic-definition.ts";

export interface Kernel {
  readonly mg: Pick<
    Makegood,
    | "store"
    | "events"
    | "ladder"
    | "watch"
    | "findings"
    | "enqueueText"
    | "deliver"
    | "replay"
    | "resolve"
    | "discard"
    | "cancel"
    | "reschedule"
  >;
  /** Null where the store keeps no recovery records, or recovery is switched off: the endpoints answer 501. */
  readonly recovery: Recovery | null;
  readonly log: Log;
  readonly clock: Clock;
  readonly version: string;
  readonly payloadBytesMax: number;
  readonly checkSink: SinkCheck;
  /** What stands before every address where another program mounts the API: `/makegood`; absent: nothing. */
  readonly basePath?: string | undefined;
  /** What the dispatcher of this process is doing; null where there is none. */
  dispatcher(): WorkerStatus | null;
  draining(): boolean;
  /** Whether a topic that a file or code declared may be deleted all the same, because nobody declares it any more. */
  abandoned(topic: string): boolean;
}
