/**
 * The settlement client: finalize() settles a reservation with the billing service or keeps it until that is possible, and
 * never throws; replayDeadLetters() tries what is due. It is a thin composition: one transport, one decision, and the store it is given.
 */
import type { MakegoodOptions } from "../../create.ts";
import type { DecideRules } from "../../message/decide.ts";
import { errorText, MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import { type RetryPolicy, retryPolicy } from "../../message/retry-policy.ts";
import { createLog, type Log } from "../../observe/log.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import { type Random, systemRandom } from "../../platform/random.ts";
import type { DLQStore } from "../../store/redis/dlq-port/dlq-store.ts";
import { createMemoryDLQStore } from "../../store/redis/dlq-port/memory-dlq-store.ts";
import type { Store } from "../../store/store.ts";
import { type BillingHealth, createBillingHealth, type KnownPersistence } from "./health.ts";
import { createLines, type Lines } from "./lines.ts";
import { isKernelStore, type Obligations } from "./obligations.ts";
import { type FinalizeResult, NO_REPLAYS, type ReplayCounts } from "./outcome.ts";
import { overPort } from "./over-port.ts";
import { overStore } from "./over-store.ts";
import { type FinalizeRequest, type Obligation, readRequest } from "./request.ts";
import type { ServiceSigner } from "./service-token.ts";
import { createTicker } from "./ticker.ts";
import { createTransport, type Transport } from "./transport.ts";

export interface SettlementOptions {
  /** Where the billing service lives; `/api/internal/finalize` is called below it. */
  readonly billingUrl: string;
  readonly s2sSigner: ServiceSigner;
  /** The seeds' port or a kernel store, opened and closed by whoever made it. Absent: memory, which survives nothing (FIN-2). */
  readonly dlqStore?: DLQStore | Store | undefined;
  /** One total deadline per call; 1,000 by default (EV-13). */
  readonly timeoutMs?: number | undefined;
  /** Replays before an obligation becomes a dead letter; 5 by default. */
  readonly maxRetries?: number | undefined;
  /** The waits before each replay, the last one repeated; 1, 2, 4, 8 and 10 minutes by default (FIN-35). Each is jittered. */
  readonly retryDelaysMs?: readonly number[] | undefined;
  /** Who the token's subject is: this service (default), or the tenant. */
  readonly s2sSubjectMode?: "service" | "tenant" | undefined;
  /** With a kernel store: further options of the Makegood behind it, such as the lower rungs of the ladder. */
  readonly makegood?: Partial<MakegoodOptions> | undefined;
  /** Absent: JSON lines on standard error. */
  readonly log?: Log | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

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
  const kept = makeObligations(options, { transport, clock, random, lines });
  const newId = createIds(clock, random);
  const known: KnownPersistence = { state: "unknown" };
  const health = createBillingHealth(kept, known, clock);
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
      await kept.persistence();
    },
    finalize,
    replayDeadLetters,
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
  const { dlqStore, timeoutMs = TIMEOUT_MS, maxRetries = MAX_RETRIES, makegood: ladder = {} } = options;
  const leaseMs = Math.max(LEASE_MS, timeoutMs + LEASE_HEADROOM_MS);
  const retry = { policy: "settlement", attemptsMax: maxRetries, tableMs: options.retryDelaysMs };
  const policy = retryPolicy(retry) as RetryPolicy;
  const rules: DecideRules = { policy, ordering: "none", onUnknown: "retry" };
  const memory = (): DLQStore => createMemoryDLQStore({ clock: parts.clock, random: parts.random, maxRetries });
  if (dlqStore === undefined) return overPort({ ...parts, store: memory(), rules, leaseMs });
  if (!isKernelStore(dlqStore)) return overPort({ ...parts, store: dlqStore, rules, leaseMs });
  const below = overPort({ ...parts, store: memory(), rules, leaseMs });
  // The kernel extends a lease while its worker lives, so it can be short: what a crash leaves behind comes back sooner.
  return overStore({ ...parts, store: dlqStore, ladder, retry, timeoutMs, leaseMs: timeoutMs + LEASE_HEADROOM_MS, below });
}

function checkOptions({ timeoutMs, maxRetries, retryDelaysMs, s2sSigner, s2sSubjectMode }: SettlementOptions): void {
  const problems: string[] = [];
  const whole = (name: string, value: number | undefined, min: number, max: number): void => {
    if (value !== undefined && !(Number.isInteger(value) && value >= min && value <= max)) {
      problems.push(`${name} must be a whole number from ${min} to ${max}`);
    }
  };
  whole("timeoutMs", timeoutMs, 10, 300_000);
  whole("maxRetries", maxRetries, 1, LIMITS.attemptsMax);
  if (retryDelaysMs?.length === 0) problems.push("retryDelaysMs needs at least one wait");
  for (const ms of retryDelaysMs ?? []) whole("retryDelaysMs", ms, 1, LIMITS.delayMsMax);
  if (typeof (s2sSigner as ServiceSigner | undefined)?.sign !== "function")
    problems.push("s2sSigner must have a function sign()");
  if (s2sSubjectMode !== undefined && s2sSubjectMode !== "service" && s2sSubjectMode !== "tenant") {
    problems.push("s2sSubjectMode must be service or tenant");
  }
  if (problems.length > 0) throw new MakegoodError("invalid_config", problems.join("; "), { problems });
}

function toStandardError(line: string): void {
  process.stderr.write(line);
}
