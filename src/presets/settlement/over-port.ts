/**
 * Obligations on the seeds' port: one direct try, then the store; below it, when it fails, a journal on disk if there is one, and at last
 * the memory of this process with the whole entry in the log (CON-7, DF-11). What waits below is replayed from there and moved up
 * as soon as the store answers, by put-if-absent only (CON-8, DF-12).
 */
import { type DecideRules, decide } from "../../message/decide.ts";
import { errorText } from "../../message/errors.ts";
import type { Outcome } from "../../message/outcome.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { DLQStore, PersistenceCheck, PutOptions } from "../../store/redis/dlq-port/dlq-store.ts";
import { createBelow, type LowerRung } from "./below.ts";
import { withDeadline } from "./deadline.ts";
import { createGate } from "./gate.ts";
import type { KeptEntry, Lines } from "./lines.ts";
import type { Obligations } from "./obligations.ts";
import { addCounts, type FinalizeResult, NO_REPLAYS, type ReplayCounts } from "./outcome.ts";
import { reasonOf, replayPass } from "./replay-pass.ts";
import type { FinalizeRequest, Obligation } from "./request.ts";
import type { Sent, Transport } from "./transport.ts";

export interface PortOptions {
  readonly store: DLQStore;
  readonly transport: Transport;
  readonly rules: DecideRules;
  readonly leaseMs: number;
  /** Where the journal below the store is; absent: there is none. */
  readonly journalDir?: string | undefined;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly lines: Lines;
}

/** How long one call of the store may take before the next rung is tried. */
const STORE_WAIT_MS = 1_500;
/** CON-15: further tries only after a broken connection, and never more time than this on top. */
const MORE_TRIES = 2;
const MORE_TRIES_MS = 300;

const BEHIND_GATE: Sent = {
  outcome: { kind: "retry", code: "breaker_open", error: "the billing service failed again and again: nothing is sent for now" },
  status: null,
};

export function overPort(options: PortOptions): Obligations {
  const { transport, rules, clock, random, lines } = options;
  const store = withDeadline(options.store, clock, STORE_WAIT_MS);
  const below = createBelow(options);
  const gate = createGate(clock);
  let survives: "power-loss" | "process-crash" = "process-crash";
  /** Whether the store did not take the last entry: the next one goes below, too. */
  let away = false;
  /** The first look at the store's persistence: until it is over nobody knows what an entry there survives. */
  let looked: Promise<unknown> | null = null;

  async function persistence(): Promise<PersistenceCheck> {
    const check = await store.validatePersistence();
    survives = check.checked.appendfsync === "always" ? "power-loss" : "process-crash";
    return check;
  }

  /** The direct try: attempt 0. */
  async function tryNow(request: FinalizeRequest): Promise<Sent> {
    if (!gate.enter()) return BEHIND_GATE;
    const startedMs = clock.monotonicMs();
    let sent = await transport.send(request);
    for (let more = 0; more < MORE_TRIES && isBroken(sent.outcome); more++) {
      const leftMs = MORE_TRIES_MS - (clock.monotonicMs() - startedMs);
      if (leftMs <= 0) break;
      sent = await transport.send(request, { timeoutMs: leftMs });
    }
    gate.leave(sent.outcome);
    lines.alert(request.reservation_id, sent.outcome);
    return sent;
  }

  async function keep(request: FinalizeRequest, reason: string, status: number | null, how: PutOptions): Promise<FinalizeResult> {
    const created_at = new Date(clock.wallMs()).toISOString();
    const entry = { ...request, reason, response_status: status, attempt_count: 1, created_at };
    await looked;
    const stored = await put(entry, how);
    const above = store.durable ? survives : "nothing";
    const said = stored === "store" ? above : stored === "journal" ? "power-loss" : "nothing";
    const where = stored === "store" ? store.kind : stored;
    return { ok: false, status: "dlq", reason, id: request.reservation_id, stored: where, survives: said };
  }

  /** The first rung that takes it. Says where it is. */
  async function put(entry: KeptEntry, how: PutOptions): Promise<"store" | LowerRung> {
    try {
      // `created_at` is left to the store's clock, so that ages of several instances compare (DF-26).
      const { created_at, ...fields } = entry;
      const result = await store.put(fields, how);
      away = false;
      if (result === "conflict") lines.conflict(entry, store.kind);
      if (result === "created") announce(entry, how, store.kind, store.durable);
      return "store";
    } catch (error) {
      away = true;
      const where = await below.put(entry, how);
      lines.degraded(store.kind, where, errorText(error));
      // The log has it whole already where nothing else does.
      if (where !== "log") announce(entry, how, where, where === "journal");
      return where;
    }
  }

  function announce(entry: KeptEntry, how: PutOptions, where: string, durable: boolean): void {
    if (how.terminal !== undefined) lines.terminal(entry, entry.attempt_count, where);
    if (how.terminal === undefined || !durable) lines.kept(entry, { store: where, durable });
  }

  const size = async (): Promise<number> => (await store.count()) + (await below.count());

  async function pass(of: DLQStore): Promise<ReplayCounts> {
    try {
      return await replayPass({ store: of, transport, gate, rules, leaseMs: options.leaseMs, random, lines });
    } catch (error) {
      lines.storeFailed("getReady", errorText(error));
      return NO_REPLAYS;
    }
  }

  return {
    kind: store.kind,
    async finalize({ request, problem }: Obligation) {
      if (problem !== null) {
        const reason = `invalid_request: ${problem}`;
        return keep(request, reason, null, { terminal: reason });
      }
      const { outcome, status } = await tryNow(request);
      const settlement = decide(DIRECT, outcome, rules, random.next());
      if (settlement.kind === "delivered") {
        return { ok: true, status: settlement.outcome === "duplicate" ? "idempotent" : "finalized" };
      }
      if (settlement.kind === "release") throw new Error("a direct try is never released");
      const reason = reasonOf(settlement);
      return keep(request, reason, status, settlement.kind === "retry" ? { delayMs: settlement.delayMs } : { terminal: reason });
    },
    async replay() {
      await below.find();
      await below.moveUp(store);
      const above = await pass(store);
      if (below.size === 0) return above;
      const counts = addCounts(above, await pass(below.memory));
      await below.tidy();
      return counts;
    },
    size,
    async oldestAgeMs() {
      const ages = await Promise.all([store.oldestEntryAgeMs(), below.memory.oldestEntryAgeMs()]);
      return ages.reduce((a, b) => (a === null ? b : b === null ? a : Math.max(a, b)), null);
    },
    // The port lists nothing by tenant.
    waiting: async () => ({ pending: await size(), owed: null }),
    durable: () => below.whole && (store.durable || (away && below.lasting)),
    opened: () => below.open(),
    persistence() {
      const looking = persistence();
      looked ??= looking.catch(() => undefined);
      return looking;
    },
    close: () => below.close(),
  };
}

const DIRECT = { attempt: 0, base: 0, handedDown: true, suspicion: 0 } as const;

/** Ambiguous and quick: the connection broke. After a timeout there is no time left to try again. */
function isBroken(outcome: Outcome): boolean {
  return outcome.kind === "unknown" && (outcome.code === "connection_reset" || outcome.code === "connection_failed");
}
