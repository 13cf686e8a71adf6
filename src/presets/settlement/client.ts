/**
 * The settlement client: finalize() settles a reservation with the billing service or keeps it until that is possible, and
 * never throws; replayDeadLetters() tries what is due. It is the seeds' words over a topic, a sink and one Makegood.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import { createLog } from "../../observe/log.ts";
import { inBackground, systemClock, within } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import { type Loop, startLoop } from "../../platform/loop.ts";
import { systemRandom } from "../../platform/random.ts";
import type { DLQPort, PersistenceCheck } from "../../store/redis/dlq-port/dlq-store.ts";
import { createMemoryDLQStore, portOver } from "../../store/redis/dlq-port/port.ts";
import { type Tally, tallyOf, UNSETTLED, withBelow } from "../../store/shared/tally.ts";
import { type Admission, type BillingHealth, createAdmission, createBillingHealth, isAofVerified, NOT_LOOKED } from "./health.ts";
import { createKeeping } from "./keeping.ts";
import { createLines } from "./lines.ts";
import { checkOptions, isStore, type SettlementOptions } from "./options.ts";
import { type FinalizeRequest, type FinalizeResult, type ReplayCounts, readRequest } from "./request.ts";
import { TOPIC, type TopicParts } from "./topic.ts";

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
  /** A worker replays what is due, without keeping the process alive; every `everyMs` it is looked at, and a line says what was done. */
  start(options?: { readonly everyMs?: number | undefined }): void;
  /** Ends the replays; what is under way is waited for. The store stays open. */
  close(): Promise<void>;
}

const TIMEOUT_MS = 1_000;
const MAX_RETRIES = 5;
const LOOK_EVERY_MS = 60_000;
const STORE_WAIT_MS = 1_500;
const NO_REPLAYS: ReplayCounts = Object.freeze({ replayed: 0, succeeded: 0, failed: 0, terminal: 0 });
/** A claim outlives the longest call under it. The kernel extends it while its worker lives: what a crash leaves comes back soon. */
const LEASE_HEADROOM_MS = 10_000;

export function createSettlementClient(options: SettlementOptions): SettlementClient {
  checkOptions(options);
  const { clock = systemClock, random = systemRandom, timeoutMs = TIMEOUT_MS, maxRetries = MAX_RETRIES, retryDelaysMs } = options;
  const log = options.log ?? createLog({ clock, format: "json", write: (line) => void process.stderr.write(line) });
  const lines = createLines(log);
  const tally = { finalized: 0, idempotent: 0, dlq: 0, unverified: 0, normalised: 0 };
  const judged: TopicParts["judged"] = ({ unverified, normalised }, request) => {
    if (normalised) tally.normalised++;
    if (!unverified) return;
    tally.unverified++;
    lines.unverified({ reservation_id: request.reservation_id });
  };
  const dlqStore = options.dlqStore ?? createMemoryDLQStore({ clock, random });
  // A store is opened by the Makegood.
  const port = isStore(dlqStore) ? portOver(dlqStore, { open: async () => {}, clock }) : (dlqStore as DLQPort);
  const { store } = port;
  const { name: kind } = store.traits;
  let withoutJournal: { readonly error: unknown } | null = null;
  const newId = createIds(clock, random);
  const kept = createKeeping({
    ...{ ...options, clock, random, lines, newId, judged, store, timeoutMs, leaseMs: timeoutMs + LEASE_HEADROOM_MS },
    place: isStore(dlqStore) ? "primary" : port.kind,
    retry: { policy: "settlement", attemptsMax: maxRetries, ...(retryDelaysMs ? { tableMs: retryDelaysMs } : {}) },
    journalRefused: (error) => {
      withoutJournal = { error };
    },
  });
  const { opening, durable } = kept;
  let looked = NOT_LOOKED;
  let reconciledMs = Number.NEGATIVE_INFINITY;
  const named = new Set<string>();
  const standing = { store, clock, unsettled, durable, looked: () => looked };
  const health = createBillingHealth(standing);
  const admission = createAdmission(standing, options);
  let passing: Promise<ReplayCounts> | null = null;
  let loop: Loop | null = null;
  const firstLook = look(true);

  async function look(announce: boolean): Promise<void> {
    const failed = (error: unknown) => ({ ...looked, state: "unknown", reason: errorText(error) }) as const;
    const { state, attested, reason } = await check().catch(failed);
    looked = { ...looked, state, attested };
    const safe = durable() && state === "verified";
    if (announce) lines[safe ? "ready" : "notReady"]({ store: kind, durable: safe, persistence: state, reason });
  }

  async function check(): Promise<Pick<PersistenceCheck, "state" | "attested" | "reason">> {
    const unknown = (reason: string) => ({ state: "unknown", attested: null, reason }) as const;
    if (!(await opening).opened()) return unknown("the store is not open yet");
    const found = await within(clock, port.validatePersistence(), STORE_WAIT_MS);
    await within(clock, reconcile(), STORE_WAIT_MS).catch((error) => lines.storeFailed("reconcile", error));
    return found ?? unknown(`no answer within ${STORE_WAIT_MS} ms`);
  }

  /** Every minute all of it is looked at; what is gone or unreadable is named once and counted for as long as it is there. */
  async function reconcile(): Promise<void> {
    const nowMs = clock.monotonicMs();
    if (nowMs - reconciledMs > LOOK_EVERY_MS) {
      reconciledMs = nowMs;
      await port.reconcile();
    }
    const found = (await port.listQuarantine(LIMITS.pageMax)).filter((one) => one.kind === "orphan" || one.kind === "corrupt");
    looked = { ...looked, unreadable: found.length };
    for (const { kind, reservation_id, at, fields } of found) {
      if (!named.has(reservation_id)) lines.unreadable({ kind, reservation_id, at, left: Object.keys(fields) });
      named.add(reservation_id);
    }
  }

  async function unsettled(): Promise<Tally> {
    const mg = await opening;
    const counts = await within(clock, store.counts(), STORE_WAIT_MS);
    if (counts === null) throw new MakegoodError("store_unavailable", `the store did not answer within ${STORE_WAIT_MS} ms`);
    return withBelow(tallyOf(counts, TOPIC, UNSETTLED), mg.ladder.status(), clock.wallMs());
  }

  async function finalize(input: FinalizeRequest): Promise<FinalizeResult> {
    const obligation = readRequest(input, newId);
    const result = await kept.finalize(obligation).catch((error) => kept.lost(obligation, error));
    tally[result.status]++;
    return result;
  }

  async function replay(): Promise<ReplayCounts> {
    const { attempts, delivered, dead, error } = await (await opening).workOff({ topics: [TOPIC] });
    if (error !== null) lines.storeFailed("replay", error);
    await kept.described();
    return { replayed: attempts, succeeded: delivered, terminal: dead, failed: attempts - delivered - dead };
  }

  async function pass(): Promise<ReplayCounts> {
    await firstLook;
    const counts = await replay().catch((error) => {
      lines.storeFailed("replay", error);
      return NO_REPLAYS;
    });
    await look(false);
    if (counts.replayed > 0)
      lines.replayed({ ...counts, remaining: (await unsettled().catch(() => null))?.count ?? null, store: kind });
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
    await (await opening.catch(() => null))?.close();
  }

  return {
    async ready({ signal, timeoutMs: waitMs } = {}) {
      const opened = opening.then((mg) => mg.whenOpened(signal)).then(() => true);
      const inTime = waitMs === undefined ? opened : within(inBackground(clock), opened, waitMs);
      if ((await inTime) === null) throw new Error(`the store was not open within ${waitMs} ms`);
      if (withoutJournal !== null) throw withoutJournal.error;
      await firstLook;
      await look(false);
    },
    finalize,
    replayDeadLetters,
    admission,
    getDLQSize: async () => (await unsettled()).count,
    getDLQOldestAgeMs: async () => (await unsettled()).oldestMs,
    isDurable: durable,
    isAofVerified: () => isAofVerified(kind, looked),
    health,
    counts: () => ({ ...tally }),
    start({ everyMs = LOOK_EVERY_MS } = {}) {
      if (loop !== null) return;
      // From when the store is open until close(), which ends every worker.
      void opening.then((mg) => mg.work({ topics: [TOPIC] })).catch(() => {});
      // DF-23: spread out, so that several instances do not come at the same moment.
      const step = () => replayDeadLetters().then(() => everyMs / 2 + (everyMs / 2) * random.next());
      loop = startLoop({ clock: inBackground(clock), step, failed: () => everyMs });
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
