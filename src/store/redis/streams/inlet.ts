/**
 * The inlet: consumes an existing stream by consumer group and hands its entries to `accept`. An entry is acknowledged and deleted only
 * after its message is committed (at least once; the key makes a repeat the same message); an outage of the store holds entries
 * and spends nothing; nothing that starts it needs Redis to be there (DA-17).
 */
import { errorText } from "../../../message/errors.ts";
import { backoffMs, jittered } from "../../../platform/backoff.ts";
import { type Clock, sleep, systemClock } from "../../../platform/clock.ts";
import { startLoop } from "../../../platform/loop.ts";
import { systemRandom } from "../../../platform/random.ts";
import type { RedisPort } from "../port.ts";
import { replyCode } from "../redis-errors.ts";
import { toRead } from "./entries.ts";
import { type Depth, ensureGroup, type Group, removeConsumer, removeSilent, streamDepth, uniqueConsumer } from "./group.ts";
import { createHeldEntries, type Held } from "./held-entries.ts";
import { type InletNotice, type InletOptions, inletSettings } from "./inlet-options.ts";
import { createTakeover, reclaimBackoffMs, type Sweep } from "./takeover.ts";

export interface Inlet {
  readonly consumer: string;
  depth(): Promise<Depth>;
  /** Finishes the entries it holds within `timeoutMs` (default 10,000) and gives the rest free for other consumers at once. */
  stop(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const RETRY = { firstMs: 200, maxMs: 30_000 };
const STOP_MS = 10_000;
/** What the last commands of a stop may take when its time is already over. */
const FAREWELL_MS = 1_000;

export function startInlet(options: InletOptions): Inlet {
  const { redis, stream, clock = systemClock, random = systemRandom } = options;
  const settings = inletSettings(options);
  const group: Group = { redis, stream, group: options.group };
  const consumer = options.consumer ?? uniqueConsumer(random);
  const tell = notifier(options.onNotice);
  const over = new AbortController();
  const entriesHeld = createHeldEntries({ group, options, settings, clock, tell, signal: over.signal });
  const takeover = createTakeover(group, consumer, settings.reclaim);
  const reader = createReader(redis);

  let known = false;
  let ownLeft: "crashed" | "broken" | null = "crashed";
  /** Zero: at once. */
  let sweepAtMs = 0;
  let retryAtMs = 0;
  let failures = 0;
  let touchedMs = clock.monotonicMs();

  const adopt = ({ taken, lost, deferred }: Sweep): void => {
    for (const { entry, deliveries, exhausted } of taken) entriesHeld.take(entry, deliveries, exhausted);
    if (taken.length > 0 || deferred > 0) tell({ what: "reclaimed", ids: taken.map(({ entry }) => entry.id), deferred });
    if (lost.length > 0) tell({ what: "lost", ids: lost });
  };

  /** Once per connection: the group, and what is pending under this name. */
  async function settleIn(): Promise<void> {
    if (!known) {
      await ensureGroup(group);
      tell({ what: "started", consumer });
      known = true;
    }
    while (ownLeft !== null && entriesHeld.held.size < settings.batchMax) {
      const found = await takeover.own(new Set(entriesHeld.held.keys()), settings.batchMax, ownLeft === "crashed");
      adopt(found);
      if (!found.more) ownLeft = null;
      await round([...entriesHeld.held.values()]);
    }
  }

  async function sweep(): Promise<void> {
    if (clock.monotonicMs() < sweepAtMs || entriesHeld.held.size >= settings.batchMax) return;
    const found = await takeover.sweep(settings.sweepMax);
    sweepAtMs = found.more ? 0 : clock.monotonicMs() + settings.sweepMs;
    adopt(found);
    if (found.more) return;
    const startedMs = clock.monotonicMs();
    const { checked, removed } = await removeSilent(group, consumer, settings.silentMs);
    tell({ what: "consumers_checked", checked, removed: removed.length, ms: clock.monotonicMs() - startedMs });
    if (removed.length > 0) tell({ what: "consumers_removed", consumers: removed });
  }

  /**
   * While the store is away entries stay held; other consumers must not take them for a dead one's. JUSTID counts no delivery.
   */
  async function touch(): Promise<void> {
    if (clock.monotonicMs() - touchedMs < settings.reclaim.reclaimIdleMs / 3) return;
    touchedMs = clock.monotonicMs();
    const ids = [...entriesHeld.held.keys()];
    if (ids.length > 0) await redis.send(stream, ["XCLAIM", stream, group.group, consumer, "0", ...ids, "JUSTID"]);
  }

  async function round(list: readonly Held[]): Promise<void> {
    if (list.length === 0) return;
    await entriesHeld.work(list);
    if (list.every(({ entry }) => !entriesHeld.held.has(entry.id))) return;
    failures++;
    retryAtMs = clock.monotonicMs() + backoffMs(RETRY, failures);
  }

  async function readSome(room: number, blockMs: number): Promise<Held[]> {
    const wait = Math.max(1, Math.floor(blockMs));
    const how = ["COUNT", String(room), "BLOCK", String(wait), "STREAMS", stream, ">"];
    const args = ["XREADGROUP", "GROUP", group.group, consumer, ...how];
    const entries = toRead(await (await reader.open()).send(stream, args, { timeoutMs: wait + 5_000 }));
    for (const entry of entries) entriesHeld.take(entry, 1, false);
    return entries.flatMap(({ id }) => entriesHeld.held.get(id) ?? []);
  }

  /** How long until a held entry is due for another try or a touch. */
  const untilNext = (): number => Math.max(1, Math.min(retryAtMs - clock.monotonicMs(), settings.reclaim.reclaimIdleMs / 6));

  async function step(stopping: AbortSignal): Promise<number> {
    await settleIn();
    await sweep();
    await touch();
    if (entriesHeld.held.size > 0 && clock.monotonicMs() >= retryAtMs) {
      await round([...entriesHeld.held.values()]);
      if (entriesHeld.held.size === 0) failures = 0;
    }
    if (stopping.aborted) return 0;
    const restMs = sweepAtMs === 0 ? 1 : Math.min(settings.sweepMs, entriesHeld.held.size === 0 ? settings.sweepMs : untilNext());
    const room = settings.batchMax - entriesHeld.held.size;
    if (room <= 0) return restMs;
    await round(await readSome(room, Math.min(settings.blockMs, restMs)));
    return 0;
  }

  const loop = startLoop({
    clock,
    step,
    failed(error, consecutive) {
      // The answer of a read may be lost: the entries that it handed out are pending under this name.
      ownLeft ??= "broken";
      if (replyCode(error) === "NOGROUP") known = false;
      tell({ what: "read_failed", error: errorText(error), consecutive });
      return jittered(backoffMs(RETRY, consecutive), random);
    },
  });

  /** Makes what is left look long idle, at the delivery count it would have had: others take it at once and nothing is charged. */
  async function giveFree(): Promise<void> {
    for (const { entry, deliveries } of entriesHeld.held.values()) {
      const idle = String(reclaimBackoffMs(settings.reclaim, settings.reclaim.reclaimsMax + 1));
      const how = ["IDLE", idle, "RETRYCOUNT", String(Math.max(0, deliveries - 1)), "JUSTID"];
      await redis.send(stream, ["XCLAIM", stream, group.group, consumer, "0", entry.id, ...how]);
    }
    await removeConsumer(group, consumer, 0);
  }

  async function stopWithin(timeoutMs: number): Promise<void> {
    const stopped = loop.stop();
    const inTime = await first(clock, stopped, timeoutMs);
    over.abort();
    await reader.close();
    if (!inTime) await first(clock, stopped, FAREWELL_MS);
    await first(clock, giveFree(), FAREWELL_MS);
    tell({ what: "stopped", consumer });
  }

  let stopping: Promise<void> | undefined;
  const stop: Inlet["stop"] = ({ timeoutMs = STOP_MS } = {}) => {
    stopping ??= stopWithin(timeoutMs);
    return stopping;
  };
  return { consumer, depth: () => streamDepth(group), stop, [Symbol.asyncDispose]: () => stop() };
}

/** A connection of its own for the command that blocks, so that nothing else waits behind it (DA-11). */
function createReader(redis: RedisPort) {
  let opened: Promise<RedisPort> | undefined;
  return {
    open(): Promise<RedisPort> {
      opened ??= redis.duplicate();
      return opened;
    },
    close: async () => (await opened?.catch(() => undefined))?.close(),
  };
}

/** Whether it ended, well or badly, before the time was over. */
async function first(clock: Clock, work: Promise<unknown>, ms: number): Promise<boolean> {
  const done = new AbortController();
  const ended = work.then(
    () => true,
    () => true,
  );
  const result = await Promise.race([ended, sleep(clock, ms, done.signal).then(() => false)]);
  done.abort();
  return result;
}

function notifier(onNotice: InletOptions["onNotice"]): (notice: InletNotice) => void {
  return (notice) => {
    try {
      onNotice?.(notice);
    } catch {
      // A listener that throws must not change what happens to an entry.
    }
  };
}
