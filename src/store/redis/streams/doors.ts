/**
 * Both doors of one stream as a service runs them: the inlet that empties it into a store, and the outlet that publishes what died
 * of it. Connecting is a part of running: a Redis that is away at the start is tried again, and nothing waits for it (DA-17). A
 * stream that grows beyond its length is said to be too long; it is never cut off (DA-1, DR-11).
 */
import { errorText } from "../../../message/errors.ts";
import { backoffMs, jittered } from "../../../platform/backoff.ts";
import { systemClock, within } from "../../../platform/clock.ts";
import { startLoop } from "../../../platform/loop.ts";
import { systemRandom } from "../../../platform/random.ts";
import { connectRedis } from "../connect.ts";
import { readDurability } from "../durability.ts";
import type { Verdict } from "../finding.ts";
import type { RedisPort } from "../port.ts";
import { hashTag, siblingKey } from "./entries.ts";
import { type Depth, uniqueConsumer } from "./group.ts";
import { type Inlet, startInlet } from "./inlet.ts";
import { type InletNotice, type InletOptions, inletSettings } from "./inlet-options.ts";
import { type Outlet, type OutletNotice, type OutletOptions, startOutlet } from "./outlet.ts";

export type StreamNotice =
  | InletNotice
  | OutletNotice
  | { readonly what: "open_failed"; readonly error: string; readonly consecutive: number }
  /** What waits in the stream may be evicted or die with Redis before it is read. */
  | { readonly what: "not_durable"; readonly appendonly: Verdict; readonly policies: readonly string[] }
  /** More entries than `lengthMax`; reported once, and again after it was short in between. */
  | { readonly what: "too_long"; readonly length: number; readonly unprocessed: number; readonly lengthMax: number };

export interface StreamDoorsOptions extends Omit<InletOptions, "redis" | "consumer" | "onNotice"> {
  /** A port, which stays the caller's, or where Redis is. */
  readonly redis: RedisPort | string;
  readonly store: OutletOptions["store"];
  /** Dead letters of these topics are published to the dead stream. */
  readonly topics: readonly string[];
  /** The dead stream's name in the seed, used where `deadStream` is absent and a cluster keeps both on one node. */
  readonly seedDeadStream?: string | undefined;
  /** What people call this consumer, such as the pod's name; its own name adds a random part, so that it is unique. */
  readonly consumerName?: string | undefined;
  readonly lengthMax?: number | undefined;
  /** Runs before the first entry is read, until it succeeds. */
  readonly prepare?: (() => Promise<unknown>) | undefined;
  readonly onNotice?: ((notice: StreamNotice) => void) | undefined;
}

export interface StreamDoors extends AsyncDisposable {
  readonly stream: string;
  readonly consumer: string;
  /** Null while Redis was not reached yet. */
  depth(): Promise<Depth | null>;
  /** There may be a new dead letter; a hint only. */
  nudge(): void;
  /** Bounded by `timeoutMs` (default 10,000); entries held then are given free for other consumers. */
  stop(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}

interface Opened {
  readonly port: RedisPort;
  readonly inlet: Inlet;
  readonly outlet: Outlet;
}

const RETRY = { firstMs: 500, maxMs: 30_000 };
const STOP_MS = 10_000;

export function startStreamDoors(options: StreamDoorsOptions): StreamDoors {
  const { stream, lengthMax, clock = systemClock, random = systemRandom } = options;
  // What can be checked without Redis is refused now, not when the first entry comes.
  const { sweepMs } = inletSettings({ ...options, redis: { cluster: false } });
  const consumer = uniqueConsumer(random, options.consumerName);
  const tell = (notice: StreamNotice): void => {
    try {
      options.onNotice?.(notice);
    } catch {
      // A listener that throws must not change what happens to an entry.
    }
  };
  let opened: Opened | undefined;
  let tooLong = false;
  let stopping: Promise<void> | undefined;

  async function open(): Promise<Opened> {
    await options.prepare?.();
    const own = typeof options.redis === "string";
    const port = typeof options.redis === "string" ? await connectRedis(options.redis, { clock }) : options.redis;
    try {
      if (stopping !== undefined) throw new Error("stopped meanwhile");
      const deadStream = deadStreamOf(options, port.cluster);
      const inlet = startInlet({ ...options, redis: port, consumer, deadStream, onNotice: tell });
      const { store, topics } = options;
      return { port, inlet, outlet: startOutlet({ redis: port, store, topics, stream: deadStream, clock, onNotice: tell }) };
    } catch (error) {
      if (own) await port.close();
      throw error;
    }
  }

  /** Reported and not refused: not reading the stream would leave its entries in danger for longer. */
  async function sayDurability(port: RedisPort): Promise<void> {
    const { appendonly, policy, policies } = await readDurability(port);
    if (appendonly === "failed" || policy === "failed") tell({ what: "not_durable", appendonly, policies });
  }

  /** A consumer can only warn: other processes add the entries. */
  async function watchLength({ port, inlet }: Opened): Promise<void> {
    if (lengthMax === undefined) return;
    const length = Number(await port.send(stream, ["XLEN", stream]));
    if (length > lengthMax && !tooLong) {
      const { unprocessed } = await inlet.depth();
      tell({ what: "too_long", length, unprocessed, lengthMax });
    }
    tooLong = length > lengthMax;
  }

  const loop = startLoop({
    clock,
    async step() {
      const first = opened === undefined;
      opened ??= await open();
      // That Redis went away is reported by the inlet.
      await watchLength(opened).catch(() => {});
      if (first) await sayDurability(opened.port).catch(() => {});
      return sweepMs;
    },
    failed(error, consecutive) {
      tell({ what: "open_failed", error: errorText(error), consecutive });
      return jittered(backoffMs(RETRY, consecutive), random);
    },
  });

  async function stopWithin(timeoutMs: number): Promise<void> {
    await within(clock, loop.stop(), timeoutMs);
    if (!opened) return;
    const { port, inlet, outlet } = opened;
    await Promise.all([inlet.stop({ timeoutMs }), within(clock, outlet.stop(), timeoutMs)]);
    if (typeof options.redis === "string") await port.close();
  }
  const stop: StreamDoors["stop"] = ({ timeoutMs = STOP_MS } = {}) => {
    stopping ??= stopWithin(timeoutMs);
    return stopping;
  };
  return {
    stream,
    consumer,
    depth: async () => (opened ? opened.inlet.depth() : null),
    nudge: () => opened?.outlet.nudge(),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  };
}

/** The seeds' names were made for one node; on a cluster the entry and its copy must be in reach of one script. */
export function deadStreamOf(
  { stream, deadStream, seedDeadStream }: Pick<StreamDoorsOptions, "stream" | "deadStream" | "seedDeadStream">,
  cluster: boolean,
): string {
  if (deadStream !== undefined) return deadStream;
  const apart = cluster && seedDeadStream !== undefined && hashTag(seedDeadStream) !== hashTag(stream);
  return seedDeadStream === undefined || apart ? siblingKey(stream, "dead-letter") : seedDeadStream;
}
