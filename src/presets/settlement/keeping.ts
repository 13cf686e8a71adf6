/**
 * Where obligations are kept and replayed: one Makegood with one topic. Its deliver() makes the direct try and walks the ladder, which is
 * the only fallback; its worker makes the replays. A store that is not open yet is a store that is away, and nothing here waits for it.
 */
import { createMakegood, type Makegood, type MakegoodOptions } from "../../create.ts";
import type { DeliverResult } from "../../delivery/deliver.ts";
import type { Worker } from "../../delivery/worker.ts";
import { errorText, MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { NewMessage } from "../../message/message.ts";
import { isTraceparent } from "../../message/validate.ts";
import type { MakegoodEvent } from "../../observe/events.ts";
import { type Clock, inBackground, within } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { DLQPort, PersistenceCheck } from "../../store/redis/dlq-port/dlq-store.ts";
import { conflictOf, fieldsOf, messageOf, sameObligation, entryOf as toEntry } from "../../store/redis/dlq-port/entry.ts";
import type { Store } from "../../store/store.ts";
import { type Tally, tallyOf, UNSETTLED, withBelow } from "../../store/tally.ts";
import type { Waiting } from "./admission.ts";
import type { KeptEntry } from "./lines.ts";
import { parseMicro } from "./money.ts";
import type { FinalizeResult, ReplayCounts } from "./outcome.ts";
import type { FinalizeRequest, Obligation } from "./request.ts";
import { payloadOf, settlementTopic, TOPIC, type TopicParts } from "./topic.ts";
import { workOff } from "./work-off.ts";

export interface KeepingOptions extends TopicParts {
  readonly port: DLQPort;
  /** What a result calls the store itself. */
  readonly place: string;
  /** Options of the Makegood: the lower rungs of the ladder. */
  readonly ladder: Partial<MakegoodOptions>;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Looked extends PersistenceCheck {
  /** Reservations whose payload is gone or cannot be read. */
  readonly unreadable: number;
}

export type Keeping = ReturnType<typeof createKeeping>;

/** How long the first calls wait for a store that is just being opened; then it is away until it is open. */
const OPEN_WAIT_MS = 1_500;
const STORE_WAIT_MS = 1_500;
const SEEN_MAX = 10_000;
const RECONCILE_MS = 60_000;

interface Opened {
  readonly mg: Makegood;
  readonly place: string;
  /** Why it is not as it was asked for; null when it is. */
  readonly problem: unknown;
}

interface Seen {
  readonly id: string;
  readonly request: FinalizeRequest;
}

export function createKeeping(options: KeepingOptions) {
  const { port, clock, lines, newId, timeoutMs } = options;
  const { name: kind } = port.store.traits;
  /** What this client has kept: a repeat is then the same message on every rung, and a contradiction is seen while the store is away. */
  const seen = new Map<string, Seen>();
  const named = new Set<string>();
  const dead = new Set<string>();
  let describing: Promise<void> = Promise.resolve();
  let failed = "";
  let ready: Opened | null = null;
  let worker: Worker | null = null;
  let closing = false;
  let reconciledMs = Number.NEGATIVE_INFINITY;
  let unreadable = 0;
  const opening = openMakegood(options).then((opened) => {
    opened.mg.events.on(heard);
    ready = opened;
    return opened;
  });

  function heard(event: MakegoodEvent): void {
    if (event.type === "rung_failed") failed = event.error;
    if (event.type === "journal_note") lines.journalNote(event);
    if (event.type === "drained" && event.moved > 0) lines.promoted(event.moved, kind);
    if (event.type === "quarantined" && event.topic === TOPIC) void contradictsBelow(event.id, event.key ?? "").catch(() => {});
    if (event.type !== "attempt" || event.topic !== TOPIC) return;
    if (event.status === "dead" && event.attempt > 0) {
      dead.add(event.id);
      describing = describing.then(() => describeDead());
    }
    if (event.status === "delivered") for (const [key, { id }] of seen) if (id === event.id) seen.delete(key);
  }

  /** FIN-64. What died below the store is described when the store has it. */
  async function describeDead(): Promise<void> {
    for (const id of dead) {
      const view = (await ready?.mg.store.get(id).catch(() => null)) ?? null;
      if (view === null) continue;
      dead.delete(id);
      const history = await port.store.history(id).catch(() => ({ attempts: [], provenance: [] }));
      const entry = toEntry(view, history);
      lines.terminal(entry, entry.attempt_count, kind);
    }
  }

  /** On its way up it met another one; its rung has given it up. */
  async function contradictsBelow(id: string, key: string): Promise<void> {
    const mine = seen.get(key);
    if (ready === null || mine?.id !== id) return;
    seen.delete(key);
    const first = await firstOf(ready.mg.store, mine.request);
    if (first === null || !sameObligation(fieldsOf(first.payload), mine.request))
      await conflict(ready, mine.request, first?.id ?? "?");
  }

  function remember(id: string, request: FinalizeRequest): void {
    if (seen.size >= SEEN_MAX) for (const oldest of seen.keys()) if (seen.delete(oldest)) break;
    if (!seen.has(request.reservation_id)) seen.set(request.reservation_id, { id, request });
  }

  /** Tries it, and keeps it where that fails. */
  async function finalize({ request, problem }: Obligation): Promise<FinalizeResult> {
    const opened = await opening;
    const { mg } = opened;
    if (problem !== null) {
      const reason = `invalid_request: ${problem}`;
      const placed = { id: newId(), key: request.reservation_id, terminal: reason, problem };
      return keep(opened, request, messageOf(entryOf(request, reason), placed));
    }
    const { reservation_id: key, tenant_id: tenantId, trace_id: trace } = request;
    const first = seen.get(key);
    if (first && !sameObligation(first.request, request) && (await isOwed(mg, first.id)))
      return conflict(opened, request, first.id);
    const traceparent = isTraceparent(trace) ? trace : null;
    const same = first && mg.ladder.status().primary === "down" ? { id: first.id } : {};
    const result = await mg.deliver(TOPIC, payloadOf({ request, problem }), { key, tenantId, timeoutMs, traceparent, ...same });
    if (result.code === "key_conflict") return contradicted(opened, request, result);
    if (result.kind === "delivered" || result.kind === "duplicate") {
      seen.delete(key);
      // `duplicate`: the receiver knew it, or the message that had the key first was delivered meanwhile.
      return { ok: true, status: result.kind === "delivered" ? "finalized" : "idempotent" };
    }
    if (result.kind === "dead") {
      const closed = await closedAs(mg.store, result.id);
      if (closed !== null) return swallowed(opened, request, closed);
    }
    if (result.stored !== null) remember(result.id, request);
    return told(opened, request, result);
  }

  /** DF-17: the reservation is kept already. With another cost the first stands and this one is a dead letter; with another trace it is the same. */
  async function contradicted(opened: Opened, request: FinalizeRequest, refused: DeliverResult): Promise<FinalizeResult> {
    const first = await firstOf(opened.mg.store, request);
    if (first === null || !sameObligation(fieldsOf(first.payload), request))
      return conflict(opened, request, first?.id ?? refused.id);
    if (first.status === "delivered") return { ok: true, status: "idempotent" };
    const closed = await closedAs(opened.mg.store, first.id);
    if (closed !== null) return swallowed(opened, request, closed);
    return kept(opened, request, "waiting: the same obligation waits already", "primary", opened.mg.store.traits.survives);
  }

  async function conflict(opened: Opened, request: FinalizeRequest, firstId: string): Promise<FinalizeResult> {
    const reason = `key_conflict: reservation ${request.reservation_id} is kept with another cost or tenant; the first stands`;
    lines.conflict(entryOf(request, reason), opened.place);
    return keep(opened, request, conflictOf({ ...entryOf(request, reason), created_at: undefined }, firstId, newId()));
  }

  /** N8: whoever closed it decided for good; what is told again is not kept again, and says so. */
  function swallowed(opened: Opened, request: FinalizeRequest, closed: Closed): FinalizeResult {
    const reason = `closed: ${closed.resolution} by ${closed.by} (${closed.why}); nothing was kept again: replay message ${closed.id} if it is owed`;
    lines.closed(entryOf(request, reason), closed.resolution, opened.place);
    const result = kept(opened, request, reason, "primary", opened.mg.store.traits.survives);
    return { ...result, closed: closed.resolution };
  }

  /** A dead letter from the start: nothing of it is sent. */
  async function keep(opened: Opened, request: FinalizeRequest, message: NewMessage): Promise<FinalizeResult> {
    const atMs = clock.wallMs();
    const put = await opened.mg.ladder.put({ message, atMs }, clock.monotonicMs() + STORE_WAIT_MS);
    const { code = null, error = null } = message.directTry ?? {};
    const nowhere = { kind: "dead", code, error, stored: null, survives: "nothing", status: null, id: message.id } as const;
    if (put.kind === "stored") return told(opened, request, { ...nowhere, stored: put.rung, survives: put.survives });
    if (put.kind !== "refused") return told(opened, request, nowhere);
    return told(opened, request, { ...nowhere, kind: "refused", code: put.code, error: put.error });
  }

  type Told = Pick<DeliverResult, "kind" | "code" | "error" | "status" | "stored" | "survives" | "id">;

  function told(opened: Opened, request: FinalizeRequest, result: Told): FinalizeResult {
    const { kind: how, code, error, stored, survives, status } = result;
    const reason = `${code ?? how}: ${error ?? "kept for later"}`;
    const entry = { ...entryOf(request, reason), response_status: status, id: result.id, dead: how === "dead" };
    const place = stored === "primary" ? opened.place : (stored ?? "log");
    if (stored !== "primary" && stored !== null) lines.degraded(kind, place, failed);
    if (how === "refused") lines.storeFailed("deliver", reason, entry);
    if (how === "dead") lines.terminal(entry, 1, place);
    if (how === "queued" || (survives === "nothing" && how !== "refused")) {
      lines.kept(entry, { store: place, durable: survives !== "nothing" });
    }
    return kept(opened, request, reason, stored ?? "log", survives);
  }

  function kept(opened: Opened, request: FinalizeRequest, reason: string, stored: string, survives: DeliverResult["survives"]) {
    const place = stored === "primary" ? opened.place : stored;
    return { ok: false, status: "dlq", reason, id: request.reservation_id, stored: place, survives } as const;
  }

  /** The last rung of all: nothing kept it, so the log does (FIN-41). */
  function lost({ request }: Obligation, error: unknown): FinalizeResult {
    const reason = `internal_error: ${errorText(error)}`;
    lines.storeFailed("finalize", errorText(error), { ...entryOf(request, reason), id: newId() });
    return { ok: false, status: "dlq", reason, id: request.reservation_id, stored: "log", survives: "nothing" };
  }

  function entryOf(request: FinalizeRequest, reason: string): KeptEntry {
    const created_at = new Date(clock.wallMs()).toISOString();
    return { ...request, reason, response_status: null, attempt_count: 1, created_at };
  }

  async function unsettled(): Promise<Tally> {
    const { mg } = await opening;
    const counts = await within(clock, mg.store.counts(), STORE_WAIT_MS);
    if (counts === null) throw new MakegoodError("store_unavailable", `the store did not answer within ${STORE_WAIT_MS} ms`);
    return withBelow(tallyOf(counts, TOPIC, UNSETTLED), mg.ladder.status(), clock.wallMs());
  }

  /** Every minute all of it is looked at; what is gone or unreadable is named once and counted for as long as it is there (N10). */
  async function reconcile(): Promise<void> {
    const nowMs = clock.monotonicMs();
    if (nowMs - reconciledMs > RECONCILE_MS) {
      reconciledMs = nowMs;
      await port.reconcile();
    }
    const found = (await port.listQuarantine(LIMITS.pageMax)).filter((one) => one.kind === "orphan" || one.kind === "corrupt");
    unreadable = found.length;
    for (const one of found) {
      if (!named.has(one.reservation_id)) lines.unreadable(one);
      named.add(one.reservation_id);
    }
  }

  return {
    kind,
    finalize,
    lost,
    async replay(): Promise<ReplayCounts> {
      // One pass over what is due.
      const { mg } = await opening;
      const counts = await workOff(mg, clock, (error) => lines.storeFailed("replay", errorText(error)));
      describing = describing.then(describeDead);
      await describing;
      return counts;
    },
    work(): void {
      // A worker of its own, from when the store is open until close().
      void opening.then(({ mg }) => {
        if (!closing) worker ??= mg.work({ topics: [TOPIC] });
      });
    },
    unsettled,
    async waiting(limit: number): Promise<Waiting> {
      const { count: pending } = await unsettled();
      return { pending, owed: pending > limit ? null : await owedBy((await opening).mg.store) };
    },
    durable(): boolean {
      // Whether everything that is kept now, and what comes next, would survive this process.
      const status = ready?.mg.ladder.status();
      return status !== undefined && status.survives !== "nothing" && status.waiting.memory === 0;
    },
    async opened(signal?: AbortSignal): Promise<void> {
      // Rejects with what keeps it from being used, or with the signal's reason.
      const { mg, problem } = await opening;
      if (problem !== null) throw problem;
      await mg.whenOpened(signal);
    },
    async look(): Promise<Looked> {
      const { mg } = await opening;
      if (!mg.opened()) return { ...unknown("the store is not open yet"), unreadable };
      const check = await within(clock, port.validatePersistence(), STORE_WAIT_MS);
      await within(clock, reconcile(), STORE_WAIT_MS).catch((error) => lines.storeFailed("reconcile", errorText(error)));
      return { ...(check ?? unknown(`no answer within ${STORE_WAIT_MS} ms`)), unreadable };
    },
    async close(): Promise<void> {
      closing = true;
      const { mg } = await opening;
      await worker?.stop();
      await mg.close();
    },
  };
}

const unknown = (reason: string): PersistenceCheck => ({ state: "unknown", reason, checked: {}, attested: null });

/** As asked for; where a journal or a refusal keeps that from starting, with less, so that finalize() never has nowhere to go (FIN-41). */
async function openMakegood(options: KeepingOptions): Promise<Opened> {
  const { port, ladder, clock, random, place } = options;
  const { journal: _, secondary: __, ...plain } = ladder;
  const open = (how: Partial<MakegoodOptions>, store: Store) =>
    createMakegood({
      openWithinMs: OPEN_WAIT_MS,
      ...how,
      ...{ store, topics: [settlementTopic(options)], sharedStore: true, clock: inBackground(clock), random },
    });
  try {
    return { mg: await open(ladder, port.store), place, problem: null };
  } catch (problem) {
    options.lines.storeFailed("open", errorText(problem));
    const memory = () => open({}, createMemoryStore({ clock, random }));
    const inMemory = port.store.traits.name === "memory";
    const mg = await (inMemory ? memory() : open(plain, port.store).catch(memory));
    return { mg, place: mg.store === port.store ? place : "memory", problem };
  }
}

async function firstOf(store: Store, { reservation_id: key, tenant_id: tenantId }: FinalizeRequest) {
  return (await store.list({ topic: TOPIC, tenantId, key, limit: 1 }).catch(() => null))?.data[0] ?? null;
}

/** Not settled and not closed, as far as the store can tell; what it does not have waits below. */
async function isOwed(mg: Makegood, id: string): Promise<boolean> {
  if (mg.ladder.status().primary === "down") return true;
  const view = await mg.store.get(id).catch(() => null);
  return view === null || (view.status !== "delivered" && (view.status !== "dead" || view.resolution === "open"));
}

interface Closed {
  readonly id: string;
  readonly resolution: "resolved" | "discarded";
  readonly by: string;
  readonly why: string;
}

async function closedAs(store: Store, id: string): Promise<Closed | null> {
  const view = await store.get(id).catch(() => null);
  if (view?.resolution !== "resolved" && view?.resolution !== "discarded") return null;
  const { provenance } = await store.history(id).catch(() => ({ provenance: [] }));
  const last = provenance.at(-1);
  return { id, resolution: view.resolution, by: last?.actor ?? "somebody", why: last?.reason ?? "no reason given" };
}

/** What each tenant owes, of what waits in the store; a page is more than was asked for. */
async function owedBy(store: Store): Promise<Map<string, bigint>> {
  const owed = new Map<string, bigint>();
  for (const status of ["pending", "processing"] as const) {
    const { data } = await store.list({ topic: TOPIC, status, limit: LIMITS.pageMax });
    for (const { tenantId, payload } of data) {
      if (tenantId === null) continue;
      owed.set(tenantId, (owed.get(tenantId) ?? 0n) + (parseMicro(fieldsOf(payload).actual_cost_micro) ?? 0n));
    }
  }
  return owed;
}
