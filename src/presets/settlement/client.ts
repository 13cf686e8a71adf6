/**
 * The settlement client: finalize() settles a reservation with the billing service or keeps it until that is possible, and
 * never throws; replayDeadLetters() tries what is due. It is a thin composition: one transport, one decision, and the store it is given.
 */
import type { DecideRules } from "../../message/decide.ts";
import { errorText } from "../../message/errors.ts";
import { type RetryPolicy, retryPolicy } from "../../message/retry-policy.ts";
import { createLog } from "../../observe/log.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import { type Random, systemRandom } from "../../platform/random.ts";
import type { DLQStore } from "../../store/redis/dlq-port/dlq-store.ts";
import { createMemoryDLQStore } from "../../store/redis/dlq-port/memory-dlq-store.ts";
import { type Admission, createAdmission } from "./admission.ts";
import { type BillingHealth, createBillingHealth, type KnownPersistence } from "./health.ts";
import { createLines, type Lines } from "./lines.ts";
import { parseMicro } from "./money.ts";
import { isKernelStore, type Obligations } from "./obligations.ts";
import { checkOptions, type SettlementOptions } from "./options.ts";
import { type FinalizeResult, NO_REPLAYS, type ReplayCounts } from "./outcome.ts";
import { overPort } from "./over-port.ts";
import { overStore } from "./over-store.ts";
import { type FinalizeRequest, type Obligation, readRequest } from "./request.ts";
import { createTicker } from "./ticker.ts";
import { createTransport, type Transport } from "./transport.ts";

/** Since the client was made. */
export interface SettlementCounts {
  readonly finalized: number;
  readonly idempotent: number;
  readonly dlq: number;
  /** 409s that were taken as settled although nothing in them could be compared (DF-20). */
  readonly unverified: number;
  /** Amounts of the receiver that were not canonical (EV-4). */
  readonly normalised: number;
}

export interface SettlementClient extends AsyncDisposable {
  /** Exactly one of finalized, idempotent, dlq; never throws, whatever comes in. */
  finalize(request: FinalizeRequest): Promise<FinalizeResult>;
  /** One pass over what is due; never throws. A call during a pass gets that pass's counts. */
  replayDeadLetters(): Promise<ReplayCounts>;
  /** Whether to reserve more for this tenant: a signal to ask for before a cost is incurred. finalize() itself never refuses (EV-8). */
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
  /** Resolves when the store is open and its persistence was looked at; rejects with what keeps it from being used. For a bootstrap (FIN-60). */
  ready(): Promise<void>;
  /** Replays now and then, jittered, without keeping the process alive. */
  start(options?: { readonly everyMs?: number | undefined }): void;
  /** Ends the replays; a pass under way is waited for. The store stays open. */
  close(): Promise<void>;
}

const TIMEOUT_MS = 1_000;
const MAX_RETRIES = 5;
const MAX_PENDING = 50;
const REPLAY_EVERY_MS = 60_000;
/** DF-5: a claim outlives the longest call under it, and the writes after that. */
const LEASE_MS = 60_000;
const LEASE_HEADROOM_MS = 10_000;

export function createSettlementClient(options: SettlementOptions): SettlementClient {
  const { clock = systemClock, random = systemRandom } = options;
  checkOptions(options);
  const lines = createLines(options.log ?? createLog({ clock, format: "json", write: toStandardError }));
  const tally = { finalized: 0, idempotent: 0, dlq: 0, unverified: 0, normalised: 0 };
  const transport = makeTransport(options, clock, lines, tally);
  const newId = createIds(clock, random);
  const kept = makeObligations(options, { transport, clock, random, lines, newId });
  const known: KnownPersistence = { state: "unknown" };
  const health = createBillingHealth(kept, known, clock);
  const admission = makeAdmission(options, kept, clock);
  const ticker = createTicker(clock, random, () => replayDeadLetters());
  let passing: Promise<ReplayCounts> | null = null;
  const firstLook = look(true);

  async function look(announce: boolean): Promise<void> {
    try {
      const { state, reason } = await kept.persistence();
      known.state = state;
      if (announce) lines.started(kept.kind, kept.durable() && state === "verified", state, reason);
    } catch (error) {
      known.state = "unknown";
      if (announce) lines.started(kept.kind, false, "unknown", errorText(error));
    }
  }

  async function finalize(input: FinalizeRequest): Promise<FinalizeResult> {
    const obligation = readRequest(input, newId);
    const result = await kept.finalize(obligation).catch((error) => lost(obligation, error));
    tally[result.status]++;
    return result;
  }

  /** The last rung of all: nothing kept it, so the log does (FIN-41). */
  function lost({ request }: Obligation, error: unknown): FinalizeResult {
    const reason = `internal_error: ${errorText(error)}`;
    const created_at = new Date(clock.wallMs()).toISOString();
    lines.storeFailed("finalize", errorText(error), { ...request, reason, response_status: null, attempt_count: 1, created_at });
    return { ok: false, status: "dlq", reason, id: request.reservation_id, stored: "log", survives: "nothing" };
  }

  async function pass(): Promise<ReplayCounts> {
    await look(false);
    const counts = await kept.replay().catch((error) => {
      lines.storeFailed("replay", errorText(error));
      return NO_REPLAYS;
    });
    if (counts.replayed > 0) lines.replayed(counts, await kept.size().catch(() => null), kept.kind);
    return counts;
  }

  /** DF-23: one at a time; who comes during a pass waits for that one. */
  function replayDeadLetters(): Promise<ReplayCounts> {
    passing ??= pass().finally(() => {
      passing = null;
    });
    return passing;
  }

  async function close(): Promise<void> {
    ticker.stop();
    await firstLook;
    await passing;
    await kept.close();
    await transport.close();
  }

  return {
    async ready() {
      await firstLook;
      await kept.opened();
      await kept.persistence();
    },
    finalize,
    replayDeadLetters,
    admission,
    getDLQSize: () => kept.size(),
    getDLQOldestAgeMs: () => kept.oldestAgeMs(),
    isDurable: () => kept.durable(),
    isAofVerified: () => kept.kind === "redis" && known.state === "verified",
    health: () => health(),
    counts: () => ({ ...tally }),
    start: ({ everyMs = REPLAY_EVERY_MS } = {}) => ticker.start(everyMs),
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface Parts {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly lines: Lines;
  readonly newId: () => string;
}

function makeAdmission({ maxPending = MAX_PENDING, maxExposureMicro }: SettlementOptions, kept: Obligations, clock: Clock) {
  const caps = { maxPending, maxExposureMicro: maxExposureMicro === undefined ? null : parseMicro(maxExposureMicro) };
  return createAdmission(() => kept.waiting(maxPending), caps, clock);
}

function makeTransport(
  options: SettlementOptions,
  clock: Clock,
  lines: Lines,
  tally: { unverified: number; normalised: number },
): Transport {
  return createTransport({
    billingUrl: options.billingUrl,
    s2sSigner: options.s2sSigner,
    s2sSubjectMode: options.s2sSubjectMode ?? "service",
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    reservationPath: options.reservationPath,
    clock,
    unverified(request) {
      tally.unverified++;
      lines.unverified(request);
    },
    normalised() {
      tally.normalised++;
    },
  });
}

function makeObligations(options: SettlementOptions, parts: Parts): Obligations {
  const { dlqStore, timeoutMs = TIMEOUT_MS, maxRetries = MAX_RETRIES, journalDir } = options;
  const leaseMs = Math.max(LEASE_MS, timeoutMs + LEASE_HEADROOM_MS);
  const retry = { policy: "settlement", attemptsMax: maxRetries, tableMs: options.retryDelaysMs };
  const policy = retryPolicy(retry) as RetryPolicy;
  const rules: DecideRules = { policy, ordering: "none", onUnknown: "retry" };
  const memory = (): DLQStore => createMemoryDLQStore({ clock: parts.clock, random: parts.random, maxRetries });
  if (dlqStore === undefined) return overPort({ ...parts, store: memory(), rules, leaseMs });
  if (!isKernelStore(dlqStore)) return overPort({ ...parts, store: dlqStore, rules, leaseMs, journalDir });
  const ladder = { ...options.makegood, ...(journalDir === undefined ? {} : { journal: { directory: journalDir } }) };
  const below = overPort({ ...parts, store: memory(), rules, leaseMs });
  // The kernel extends a lease while its worker lives, so it can be short: what a crash leaves behind comes back sooner.
  return overStore({ ...parts, store: dlqStore, ladder, retry, timeoutMs, leaseMs: timeoutMs + LEASE_HEADROOM_MS, below });
}

function toStandardError(line: string): void {
  process.stderr.write(line);
}
