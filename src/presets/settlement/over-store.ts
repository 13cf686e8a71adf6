/**
 * Obligations on a kernel store: a small Makegood with one topic, whose deliver() makes the direct try and walks the ladder, and
 * whose worker makes the replays. While a store cannot even be opened, obligations wait on the port in memory, each
 * whole in the log, and are replayed from there.
 */
import { createMakegood, type Makegood, type MakegoodOptions } from "../../create.ts";
import type { DeliverResult } from "../../delivery/deliver.ts";
import { errorText } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { RetryConfig } from "../../message/retry-policy.ts";
import { isTraceparent } from "../../message/validate.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { Store } from "../../store/store.ts";
import { within } from "./deadline.ts";
import type { Lines } from "./lines.ts";
import { parseMicro } from "./money.ts";
import type { Obligations } from "./obligations.ts";
import { addCounts, type FinalizeResult } from "./outcome.ts";
import { type FinalizeRequest, type Obligation, readRequest } from "./request.ts";
import { payloadOf, settlementTopic, TOPIC } from "./topic.ts";
import type { Transport } from "./transport.ts";
import { workOff } from "./work-off.ts";

export interface StoreOptions {
  readonly store: Store;
  /** Options of the Makegood behind it: the lower rungs of the ladder. */
  readonly ladder: Partial<MakegoodOptions>;
  readonly transport: Transport;
  readonly retry: RetryConfig;
  readonly timeoutMs: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly lines: Lines;
  /** Where obligations go while the store cannot be opened. */
  readonly below: Obligations;
}

const OPEN_WAIT_MS = 1_500;

export function overStore(options: StoreOptions): Obligations {
  const { store, clock, lines, below } = options;
  const { name } = store.traits;
  let opening: Promise<Makegood> | null = null;
  let ladder: Makegood["ladder"] | null = null;

  function open(): Promise<Makegood> {
    opening ??= openMakegood(options).then(
      (mg) => {
        ladder = mg.ladder;
        return mg;
      },
      (error) => {
        opening = null;
        throw error;
      },
    );
    return within(clock, OPEN_WAIT_MS, "opening the store", opening);
  }

  async function opened(): Promise<Makegood | null> {
    try {
      return await open();
    } catch (error) {
      lines.degraded(name, "memory", errorText(error));
      return null;
    }
  }

  async function finalize(obligation: Obligation): Promise<FinalizeResult> {
    const mg = await opened();
    if (mg === null) return below.finalize(obligation);
    const { request } = obligation;
    const result = await deliver(mg, obligation, options.timeoutMs);
    if (result.code === "key_conflict") return contradicted(mg, request, result, options);
    return told(result, request, lines, clock);
  }

  async function size(): Promise<number> {
    const mg = await open();
    const { journal, memory } = mg.ladder.status().waiting;
    const stored = unsettled(await mg.store.counts()).reduce((sum, { count: of }) => sum + of, 0);
    return stored + journal + memory + (await below.size());
  }

  return {
    kind: name,
    finalize,
    async replay() {
      const mg = await opened();
      if (mg === null) return below.replay();
      const passed = await workOff(mg, clock, lines);
      return (await below.size()) === 0 ? passed : addCounts(passed, await below.replay());
    },
    size,
    async oldestAgeMs() {
      const mg = await open();
      const { oldestAtMs } = mg.ladder.status();
      const ages = unsettled(await mg.store.counts()).map(({ oldestMs }) => oldestMs);
      ages.push(oldestAtMs === null ? null : clock.wallMs() - oldestAtMs, await below.oldestAgeMs());
      const known = ages.filter((ms) => ms !== null);
      return known.length === 0 ? null : Math.max(...known);
    },
    async waiting(limit) {
      const pending = await size();
      return { pending, owed: pending > limit ? null : await owedBy((await open()).store) };
    },
    durable() {
      const status = ladder?.status();
      return status !== undefined && status.survives !== "nothing" && status.waiting.memory === 0;
    },
    async opened() {
      await open();
    },
    async persistence() {
      await (await open()).store.check();
      const { survives } = store.traits;
      return { state: survives === "nothing" ? "failed" : "verified", reason: `${name} survives ${survives}` };
    },
    async close() {
      const mg = await opening?.catch(() => null);
      await mg?.close();
      await below.close();
    },
  };
}

function deliver(mg: Makegood, obligation: Obligation, timeoutMs: number): Promise<DeliverResult> {
  const { request, problem } = obligation;
  const { trace_id: trace, reservation_id: key } = request;
  // What is wrong with a request may be its tenant.
  const tenantId = problem === null ? request.tenant_id : null;
  const traceparent = isTraceparent(trace) ? trace : null;
  return mg.deliver(TOPIC, payloadOf(obligation), { key, tenantId, timeoutMs, traceparent });
}

/** DF-17: the reservation waits already. With another cost the first stands and this one is a dead letter; with another trace it is the same. */
async function contradicted(
  mg: Makegood,
  request: FinalizeRequest,
  refused: DeliverResult,
  { lines, clock, timeoutMs }: StoreOptions,
): Promise<FinalizeResult> {
  const { reservation_id: key, tenant_id: tenantId } = request;
  const found = await mg.store.list({ topic: TOPIC, tenantId, key, limit: 1 }).catch(() => null);
  const first = found?.data[0];
  const { survives } = mg.store.traits;
  if (first && readRequest(JSON.parse(first.payload), () => key).request.actual_cost_micro === request.actual_cost_micro) {
    if (first.status === "delivered") return { ok: true, status: "idempotent" };
    return { ok: false, status: "dlq", reason: "the same obligation waits already", id: key, stored: "primary", survives };
  }
  const problem = `reservation ${key} is kept with another cost`;
  const kept = await deliver(mg, { request: { ...request, reservation_id: `conflict-${refused.id}` }, problem }, timeoutMs);
  lines.conflict({ ...request, reason: problem, response_status: null, attempt_count: 1, created_at: nowIso(clock) }, "primary");
  return told(kept, request, lines, clock);
}

const nowIso = (clock: Clock): string => new Date(clock.wallMs()).toISOString();

async function openMakegood(options: StoreOptions): Promise<Makegood> {
  const { store, clock, random, ladder } = options;
  return createMakegood({ ...ladder, store, topics: [settlementTopic(options)], sharedStore: true, clock, random });
}

function told(result: DeliverResult, request: FinalizeRequest, lines: Lines, clock: Clock): FinalizeResult {
  const { kind, code, error, stored, survives, key } = result;
  if (kind === "delivered") return { ok: true, status: "finalized" };
  // The receiver knew it, or the message that had the key first was delivered meanwhile.
  if (kind === "duplicate") return { ok: true, status: "idempotent" };
  const reason = `${code ?? kind}: ${error ?? "kept for later"}`;
  const entry = { ...request, reason, response_status: result.status, attempt_count: 1, created_at: nowIso(clock) };
  const place = stored ?? "log";
  if (kind === "refused") lines.storeFailed("deliver", reason, entry);
  if (kind === "dead") lines.terminal(entry, 1, place);
  if (kind === "queued" || (survives === "nothing" && kind !== "refused")) {
    lines.kept(entry, { store: place, durable: survives !== "nothing" });
  }
  return { ok: false, status: "dlq", reason, id: key, stored: place, survives };
}

type Counts = Awaited<ReturnType<Store["counts"]>>;

function unsettled(counts: Counts): Counts {
  return counts.filter(({ topic: of, status }) => of === TOPIC && (status === "pending" || status === "processing"));
}

/** What each tenant owes, of what waits in the store; a page is more than was asked for. */
async function owedBy(store: Store): Promise<Map<string, bigint>> {
  const owed = new Map<string, bigint>();
  for (const status of ["pending", "processing"] as const) {
    const { data } = await store.list({ topic: TOPIC, status, limit: LIMITS.pageMax });
    for (const { tenantId, payload } of data) {
      if (tenantId === null) continue;
      const { request } = readRequest(JSON.parse(payload), () => "");
      owed.set(tenantId, (owed.get(tenantId) ?? 0n) + (parseMicro(request.actual_cost_micro) ?? 0n));
    }
  }
  return owed;
}
