/**
 * The settlement client: finalize() settles a reservation with the billing service or keeps it until that is possible, and
 * never throws; replayDeadLetters() tries what is due. It is the seeds' words over a topic, a sink and one Makegood.
 */
import { errorText } from "../../message/errors.ts";
import { createLog } from "../../observe/log.ts";
import { inBackground, systemClock, within } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import { type Loop, startLoop } from "../../platform/loop.ts";
import { systemRandom } from "../../platform/random.ts";
import type { DLQPort } from "../../store/redis/dlq-port/dlq-store.ts";
import { createMemoryDLQStore, portOver } from "../../store/redis/dlq-port/port.ts";
import { type Admission, createAdmission } from "./admission.ts";
import { type BillingHealth, createBillingHealth, isAofVerified, type LastLook, NOT_LOOKED } from "./health.ts";
import { createKeeping, type Keeping, type KeepingOptions } from "./keeping.ts";
import { createLines } from "./lines.ts";
import { checkOptions, isStore, type SettlementOptions } from "./options.ts";
import { type FinalizeResult, NO_REPLAYS, type ReplayCounts } from "./outcome.ts";
import { type FinalizeRequest, readRequest } from "./request.ts";
import { createTransport, type TransportOptions } from "./transport.ts";

/** Since the client was made. */
export interface SettlementCounts {
  readonly finalized: number;
  readonly idempotent: number;
  readonly dlq: number;
  /** 409s that were taken as settled although nothing in them could be compared. */
  readonly unverified: number;
  /** Amounts of the receiver that were not canonical. */
  readonly normalised: number;
}

export interface SettlementClient extends AsyncDisposable {
  /** Exactly one of finalized, idempotent, dlq; never throws, on any input. */
  finalize(request: FinalizeRequest): Promise<FinalizeResult>;
  /** One pass over what is due; never throws. A call during a pass gets that pass's counts. */
  replayDeadLetters(): Promise<ReplayCounts>;
  /** Whether to reserve more for this tenant: a signal to ask for before a cost is incurred. finalize() itself never refuses. */
  admission(tenantId: string): Promise<Admission>;
  /** What waits for a replay, here and in the store. */
  getDLQSize(): Promise<number>;
  getDLQOldestAgeMs(): Promise<number | null>;
  isDurable(): boolean;
  /** True only when the Redis server said so. */
  isAofVerified(): boolean;
  /** The `billing` block of a health answer, within a tenth of a second. */
  health(): Promise<BillingHealth>;
  counts(): SettlementCounts;
  /**
   * Resolves when the store is open and its persistence was looked at, however long that takes; rejects with what keeps it from
   * being used at all, with the signal's reason, or when `timeoutMs` is over. For a bootstrap.
   */
  ready(options?: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number | undefined }): Promise<void>;
  /**
   * A worker replays what is due, without keeping the process alive; every `everyMs` the store is looked at and a line says what
   * was done.
   */
  start(options?: { readonly everyMs?: number | undefined }): void;
  /** Ends the replays; what is under way is waited for. The store stays open. */
  close(): Promise<void>;
}

const TIMEOUT_MS = 1_000;
const MAX_RETRIES = 5;
const LOOK_EVERY_MS = 60_000;
/**
 * A claim outlives the longest call under it. The kernel extends it while its worker lives, so what a crash leaves comes back
 * soon.
 */
const LEASE_HEADROOM_MS = 10_000;

export function createSettlementClient(options: SettlementOptions): SettlementClient {
  const { clock = systemClock, random = systemRandom } = options;
  checkOptions(options);
  const log = options.log ?? createLog({ clock, format: "json", write: (line) => void process.stderr.write(line) });
  const lines = createLines(log);
  const tally = { finalized: 0, idempotent: 0, dlq: 0, unverified: 0, normalised: 0 };
  const judged: TransportOptions["judged"] = ({ unverified, normalised }, request) => {
    if (normalised) tally.normalised++;
    if (!unverified) return;
    tally.unverified++;
    lines.unverified(request);
  };
  const transport = createTransport({ ...options, timeoutMs: options.timeoutMs ?? TIMEOUT_MS, clock, judged });
  const newId = createIds(clock, random);
  const kept = makeKeeping(options, { transport, clock, random, lines, newId });
  let looked: LastLook = NOT_LOOKED;
  const health = createBillingHealth(kept, () => looked, clock);
  const admission = createAdmission(kept.waiting, options, clock);
  let passing: Promise<ReplayCounts> | null = null;
  let loop: Loop | null = null;
  const firstLook = look(true);

  async function look(announce: boolean): Promise<void> {
    const failed = (error: unknown) => ({ ...looked, state: "unknown", reason: errorText(error) }) as const;
    const { reason, ...found } = await kept.look().catch(failed);
    looked = found;
    if (announce) lines.started(kept.kind, kept.durable() && found.state === "verified", found.state, reason);
  }

  async function finalize(input: FinalizeRequest): Promise<FinalizeResult> {
    const obligation = readRequest(input, newId);
    const result = await kept.finalize(obligation).catch((error) => kept.lost(obligation, error));
    tally[result.status]++;
    return result;
  }

  async function pass(): Promise<ReplayCounts> {
    await firstLook;
    const counts = await kept.replay().catch((error) => {
      lines.storeFailed("replay", errorText(error));
      return NO_REPLAYS;
    });
    await look(false);
    if (counts.replayed > 0) lines.replayed(counts, (await kept.unsettled().catch(() => null))?.count ?? null, kept.kind);
    return counts;
  }

  /** One at a time; a call during a pass waits for that one. */
  function replayDeadLetters(): Promise<ReplayCounts> {
    passing ??= pass().finally(() => {
      passing = null;
    });
    return passing;
  }

  async function close(): Promise<void> {
    await loop?.stop();
    await firstLook;
    await passing;
    await kept.close();
    await transport.close();
  }

  return {
    async ready({ signal, timeoutMs } = {}) {
      const opened = kept.opened(signal).then(() => true);
      const inTime = timeoutMs === undefined ? opened : within(inBackground(clock), opened, timeoutMs);
      if ((await inTime) === null) throw new Error(`the store was not open within ${timeoutMs} ms`);
      await firstLook;
      await look(false);
    },
    finalize,
    replayDeadLetters,
    admission,
    getDLQSize: async () => (await kept.unsettled()).count,
    getDLQOldestAgeMs: async () => (await kept.unsettled()).oldestMs,
    isDurable: () => kept.durable(),
    isAofVerified: () => isAofVerified(kept.kind, looked),
    health: () => health(),
    counts: () => ({ ...tally }),
    start({ everyMs = LOOK_EVERY_MS } = {}) {
      if (loop !== null) return;
      kept.work();
      // DF-23: spread out, so that several instances do not come at the same moment.
      const step = () => replayDeadLetters().then(() => everyMs / 2 + (everyMs / 2) * random.next());
      loop = startLoop({ clock: inBackground(clock), step, failed: () => everyMs });
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

type Parts = Pick<KeepingOptions, "transport" | "clock" | "random" | "lines" | "newId">;

function makeKeeping(options: SettlementOptions, parts: Parts): Keeping {
  const { timeoutMs = TIMEOUT_MS, maxRetries = MAX_RETRIES, journalDir, retryDelaysMs, makegood } = options;
  const dlqStore = options.dlqStore ?? createMemoryDLQStore(parts);
  const retry = { policy: "settlement" as const, attemptsMax: maxRetries, ...(retryDelaysMs ? { tableMs: retryDelaysMs } : {}) };
  const ladder = { ...makegood, ...(journalDir === undefined ? {} : { journal: { directory: journalDir } }) };
  // A store is opened by the Makegood.
  const given = isStore(dlqStore)
    ? { port: portOver(dlqStore, { open: async () => {}, clock: parts.clock }), place: "primary" }
    : { port: dlqStore as DLQPort, place: dlqStore.kind };
  return createKeeping({ ...parts, ...given, ladder, retry, timeoutMs, leaseMs: timeoutMs + LEASE_HEADROOM_MS });
}
