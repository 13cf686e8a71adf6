/**
 * The options of the settlement client, and a check at start that reports every mistake at once.
 */
import type { MakegoodOptions } from "../../create.ts";
import { MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import { numberProblem } from "../../message/validate.ts";
import type { Log } from "../../observe/log.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { ServiceSigner } from "../../sink/service-token.ts";
import type { DLQPort, DLQStore } from "../../store/redis/dlq-port/dlq-store.ts";
import type { Store } from "../../store/store.ts";
import { parseMicro } from "./money.ts";

export interface SettlementOptions {
  /** Where the billing service lives; `/api/internal/finalize` is called below it. */
  readonly billingUrl: string;
  readonly s2sSigner: ServiceSigner;
  /** A port of createRedisDLQStore or createMemoryDLQStore, or any store; the caller closes it. Absent: memory, which survives nothing. */
  readonly dlqStore?: DLQPort | DLQStore | Store | undefined;
  /** One total deadline per call; 1,000 by default. */
  readonly timeoutMs?: number | undefined;
  /** Replays before an obligation becomes a dead letter; 5 by default. */
  readonly maxRetries?: number | undefined;
  /** The waits before each replay, the last one repeated; 1, 2, 4, 8 and 10 minutes by default. Each is jittered. */
  readonly retryDelaysMs?: readonly number[] | undefined;
  /** Who the token's subject is: this service (default), or the tenant. */
  readonly s2sSubjectMode?: "service" | "tenant" | undefined;
  /**
   * Where a reservation can be read, below `billingUrl` and with `{id}` for its id, such as /api/internal/reservations/{id}. It
   * is asked with a token of its own, within the same deadline, when a 409 carries nothing to compare. Absent: nothing is asked.
   */
  readonly reservationPath?: string | undefined;
  /** A directory of this client's own for the journal below the store: what the store does not take survives there. Needs `dlqStore`. */
  readonly journalDir?: string | undefined;
  /** For admission(): how many obligations may wait; 50 by default, at most 1,000. */
  readonly maxPending?: number | undefined;
  /** For admission(): how much may wait for one tenant, in micro, as text; absent: no cap. */
  readonly maxExposureMicro?: string | undefined;
  /** Further options of the Makegood behind it, such as the lower rungs of the ladder. */
  readonly makegood?: Partial<MakegoodOptions> | undefined;
  /** Absent: JSON lines on standard error. */
  readonly log?: Log | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

export function checkOptions(options: SettlementOptions): void {
  const { dlqStore, journalDir, makegood, maxExposureMicro, retryDelaysMs, s2sSigner, s2sSubjectMode = "service" } = options;
  const below = journalDir !== undefined;
  const number = (name: "timeoutMs" | "maxRetries" | "maxPending", min: number, max: number) =>
    options[name] !== undefined && numberProblem(name, options[name], min, max);
  const found = [
    dlqStore !== undefined && !isStore(dlqStore) && !("store" in dlqStore && "claimForReplay" in dlqStore) && NO_PORT,
    below && (typeof journalDir !== "string" || journalDir === "") && "journalDir must be the path of a directory",
    below && dlqStore === undefined && "journalDir needs a dlqStore: give one",
    below && makegood?.journal !== undefined && "journalDir and makegood.journal are the same: give one of them",
    maxExposureMicro !== undefined && parseMicro(maxExposureMicro) === null && NO_AMOUNT,
    number("timeoutMs", 10, 300_000),
    number("maxRetries", 1, LIMITS.attemptsMax),
    number("maxPending", 1, LIMITS.pageMax),
    retryDelaysMs?.length === 0 && "retryDelaysMs needs at least one wait",
    ...(retryDelaysMs ?? []).map((ms) => numberProblem("retryDelaysMs", ms, 1, LIMITS.delayMsMax)),
    typeof (s2sSigner as ServiceSigner | undefined)?.sign !== "function" && "s2sSigner must have a function sign()",
    s2sSubjectMode !== "service" && s2sSubjectMode !== "tenant" && "s2sSubjectMode must be service or tenant",
  ];
  const problems = found.filter((problem) => typeof problem === "string");
  if (problems.length > 0) throw new MakegoodError("invalid_config", problems.join("; "), { problems });
}

const NO_PORT =
  "dlqStore must be a port made by createRedisDLQStore or createMemoryDLQStore, or a store: give the store below yours";
const NO_AMOUNT = "maxExposureMicro must be a whole number in decimal text";

export function isStore(given: object): given is Store {
  return "traits" in given && "enqueue" in given;
}
