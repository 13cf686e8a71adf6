/**
 * Where obligations are kept and replayed: one Makegood with one topic. Its deliver() makes the direct try and walks the ladder, which is
 * the only fallback; its worker makes the replays. A store that is not open yet is a store that is away, and nothing here waits for it.
 */
import type { DeliverResult } from "../../client/deliver.ts";
import { createMakegood, type Makegood, type MakegoodOptions } from "../../create.ts";
import { errorText, MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { MessageView, NewMessage } from "../../message/message.ts";
import { isTraceparent } from "../../message/validate.ts";
import type { MakegoodEvent } from "../../observe/events.ts";
import { type Clock, inBackground, within } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { DLQPort, PersistenceCheck } from "../../store/redis/dlq-port/dlq-store.ts";
import * as entries from "../../store/redis/dlq-port/entry.ts";
import { type Tally, tallyOf, UNSETTLED, withBelow } from "../../store/shared/tally.ts";
import type { Store } from "../../store/store.ts";
import type { Worker } from "../../worker/worker.ts";
import type { Waiting } from "./admission.ts";
import type { KeptEntry } from "./lines.ts";
import { parseMicro } from "./money.ts";
import type { FinalizeResult, ReplayCounts } from "./outcome.ts";
import type { FinalizeRequest, Obligation } from "./request.ts";
import { settlementTopic, TOPIC, type TopicParts } from "./topic.ts";

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
const IDEMPOTENT: FinalizeResult = { ok: true, status: "idempotent" };

interface Seen {
  readonly id: string;
  readonly request: FinalizeRequest;
}

type KeptAs = Pick<DeliverResult, "kind" | "code" | "error" | "status" | "stored" | "survives" | "id">;

export function createKeeping(options: KeepingOptions) {
  const { port, clock, lines, newId, timeoutMs } = options;
  const { name: kind } = port.store.traits;
  /** What this client has kept: a repeat is then the same message on every rung, and a contradiction is seen while the store is away. */
  const seen = new Map<string, Seen>();
  const [named, dead] = [new Set<string>(), new Set<string>()];
  let describing: Promise<void> = Promise.resolve();
  let failed = "";
  let ready: Makegood | null = null;
  let worker: Worker | null = null;
  let closing = false;
  let reconciledMs = Number.NEGATIVE_INFINITY;
  let unreadable = 0;
  let withoutJournal: { readonly error: unknown } | null = null;
  const opening = open();

  async function open(): Promise<Makegood> {
    const tell = (error: unknown): void => lines.storeFailed("open", errorText(error));
    const journalRefused = (error: unknown): void => {
      withoutJournal = { error };
      tell(error);
    };
    const mg = await createMakegood({
      ...options.ladder,
      ...{ store: port.store, topics: [settlementTopic(options)], sharedStore: true },
      ...{ openWithinMs: OPEN_WAIT_MS, startsWithoutStore: "even-refused", storeRefused: tell, journalRefused },
      ...{ clock: inBackground(clock), random: options.random, log: "silent" },
    });
    mg.events.on(heard);
    ready = mg;
    return mg;
  }

  function heard(event: MakegoodEvent): void {
    if (event.type === "rung_failed") failed = event.error;
    if (event.type === "journal_note") lines.journalNote(event);
    if (event.type === "drained" && event.moved > 0) lines.promoted(event.moved, kind);
    if (event.type === "quarantined" && event.topic === TOPIC) void contradictsBelow(event.id, event.key ?? "").catch(() => {});
    if (event.type === "absorbed" && event.topic === TOPIC) void closedAbove(event.by).catch(() => {});
    if (event.type !== "attempt" || event.topic !== TOPIC) return;
    if (event.status === "dead" && event.attempt > 0) {
      dead.add(event.id);
      describing = describing.then(() => describeDead());
    }
    if (event.status === "delivered") for (const [key, { id }] of seen) if (id === event.id) seen.delete(key);
  }

  /** What died below the store is described when the store has it. */
  async function describeDead(): Promise<void> {
    for (const id of dead) {
      const view = (await port.store.get(id).catch(() => null)) ?? null;
      if (view === null) continue;
      dead.delete(id);
      const history = await port.store.history(id).catch(() => ({ attempts: [], provenance: [] }));
      const entry = entries.entryOf(view, history);
      lines.terminal(entry, entry.attempt_count, kind);
    }
  }

  /** On its way up it met another one; its rung has given it up. */
  async function contradictsBelow(id: string, key: string): Promise<void> {
    const mine = seen.get(key);
    if (ready === null || mine?.id !== id) return;
    seen.delete(key);
    const first = await firstOf(port.store, mine.request);
    if (first === null || entries.standsTo(first, mine.request) === "other") await conflict(ready, mine.request, first);
  }

  /** A reservation that came again while the store was away, and that a person has closed meanwhile. */
  async function closedAbove(id: string): Promise<void> {
    const view = await port.store.get(id);
    const { entry: _, problem: __, ...request } = entries.fieldsOf(view?.payload ?? "");
    if (view && entries.standsTo(view, request) === "closed")
      lines.closed(entryOf(request, await closedWords(port.store, view)), String(view.resolution), options.place);
  }

  /** Tries it, and keeps it where that fails. */
  async function finalize({ request, problem }: Obligation): Promise<FinalizeResult> {
    const mg = await opening;
    const { reservation_id: key, tenant_id: tenantId, trace_id: trace } = request;
    if (problem !== null) {
      const reason = `invalid_request: ${problem}`;
      return keep(mg, request, entries.messageOf(entryOf(request, reason), { id: newId(), key, terminal: reason, problem }));
    }
    const first = seen.get(key);
    const away = mg.ladder.status().primary === "down";
    if (first && (await contradicts(request, first, away ? null : port.store))) return conflict(mg, request, first);
    const traceparent = isTraceparent(trace) ? trace : null;
    const same = first && away ? { id: first.id } : {};
    // A reservation that comes again is the same message, with any trace.
    const payload = entries.payloadOf(first ? { ...request, trace_id: first.request.trace_id } : request);
    const result = await mg.deliver(TOPIC, payload, { key, tenantId, timeoutMs, traceparent, ...same });
    if (result.code === "key_conflict") return again(mg, request, await firstOf(port.store, request));
    if (result.kind === "delivered" || result.kind === "duplicate") {
      seen.delete(key);
      // `duplicate`: the receiver knew it, or the message that had the key first was delivered meanwhile.
      return result.kind === "delivered" ? { ok: true, status: "finalized" } : IDEMPOTENT;
    }
    const ended = result.kind === "dead" ? await port.store.get(result.id).catch(() => null) : null;
    if (ended && entries.standsTo(ended, request) === "closed") return again(mg, request, ended);
    if (result.stored !== null) remember(seen, result.id, request);
    return keptResult(request, result);
  }

  /** The reservation came before: what became of that message is the answer. */
  async function again(mg: Makegood, request: FinalizeRequest, first: MessageView | null): Promise<FinalizeResult> {
    const standing = first === null ? "other" : entries.standsTo(first, request);
    if (first === null || standing === "other") return conflict(mg, request, first);
    if (standing === "settled") return IDEMPOTENT;
    const { survives } = mg.store.traits;
    if (standing === "owed") return kept(request, "waiting: the same obligation waits already", "primary", survives);
    const reason = await closedWords(port.store, first);
    const closed = first.resolution as "resolved" | "discarded";
    lines.closed(entryOf(request, reason), closed, options.place);
    return { ...kept(request, reason, "primary", survives), closed };
  }

  /** The first stands, and this one is a dead letter of its own. */
  async function conflict(mg: Makegood, request: FinalizeRequest, first: Pick<Seen, "id"> | null): Promise<FinalizeResult> {
    const reason = `key_conflict: reservation ${request.reservation_id} is kept with another cost or tenant; the first stands`;
    const entry = entryOf(request, reason);
    lines.conflict(entry, options.place);
    return keep(mg, request, entries.conflictOf({ ...entry, created_at: undefined }, first?.id ?? "?", newId()));
  }

  /** A dead letter from the start: nothing of it is sent. */
  async function keep(mg: Makegood, request: FinalizeRequest, message: NewMessage): Promise<FinalizeResult> {
    const put = await mg.ladder.put({ message, atMs: clock.wallMs() }, clock.monotonicMs() + STORE_WAIT_MS);
    const { code = null, error = null } = message.directTry ?? {};
    const nowhere = { kind: "dead", code, error, stored: null, survives: "nothing", status: null, id: message.id } as const;
    if (put.kind === "stored") return keptResult(request, { ...nowhere, stored: put.rung, survives: put.survives }, message);
    return keptResult(request, put.kind === "refused" ? { ...nowhere, ...put } : nowhere, message);
  }

  function keptResult(request: FinalizeRequest, result: KeptAs, message?: NewMessage): FinalizeResult {
    const { kind: how, code, error, stored, survives, status, id } = result;
    const reason = `${code ?? how}: ${error ?? "kept for later"}`;
    const entry = { ...entryOf(request, reason), response_status: status, id, dead: how === "dead", message };
    const answer = kept(request, reason, stored ?? "log", survives);
    const { stored: place } = answer;
    if (stored !== "primary" && stored !== null) lines.degraded(kind, place, failed);
    if (how === "refused") lines.storeFailed("deliver", reason, entry);
    if (how === "dead") lines.terminal(entry, 1, place);
    if (how === "queued" || (survives === "nothing" && how !== "refused")) lines.kept(entry, place, survives !== "nothing");
    return answer;
  }

  function kept({ reservation_id: id }: FinalizeRequest, reason: string, stored: string, survives: DeliverResult["survives"]) {
    return { ok: false, status: "dlq", reason, id, stored: stored === "primary" ? options.place : stored, survives } as const;
  }

  /** Below the last rung: nothing kept it, so the log does. */
  function lost({ request }: Obligation, error: unknown): FinalizeResult {
    const reason = `internal_error: ${errorText(error)}`;
    lines.storeFailed("finalize", errorText(error), { ...entryOf(request, reason), id: newId() });
    return kept(request, reason, "log", "nothing");
  }

  function entryOf(request: FinalizeRequest, reason: string): KeptEntry {
    const created_at = new Date(clock.wallMs()).toISOString();
    return { ...request, reason, response_status: null, attempt_count: 1, created_at };
  }

  async function unsettled(): Promise<Tally> {
    const mg = await opening;
    const counts = await within(clock, mg.store.counts(), STORE_WAIT_MS);
    if (counts === null) throw new MakegoodError("store_unavailable", `the store did not answer within ${STORE_WAIT_MS} ms`);
    return withBelow(tallyOf(counts, TOPIC, UNSETTLED), mg.ladder.status(), clock.wallMs());
  }

  /** Every minute all of it is looked at; what is gone or unreadable is named once and counted for as long as it is there. */
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
      const mg = await opening;
      const { attempts: replayed, delivered: succeeded, dead: terminal, error } = await mg.workOff({ topics: [TOPIC] });
      if (error !== null) lines.storeFailed("replay", errorText(error));
      describing = describing.then(describeDead);
      await describing;
      return { replayed, succeeded, terminal, failed: replayed - succeeded - terminal };
    },
    work(): void {
      // A worker of its own, from when the store is open until close().
      void opening.then((mg) => {
        if (!closing) worker ??= mg.work({ topics: [TOPIC] });
      });
    },
    unsettled,
    async waiting(limit: number): Promise<Waiting> {
      const { count: pending } = await unsettled();
      return { pending, owed: pending > limit ? null : await owedBy(port.store) };
    },
    durable(): boolean {
      // Whether everything that is kept now, and what comes next, would survive this process.
      return (ready?.ladder.status().durable ?? "nothing") !== "nothing";
    },
    async opened(signal?: AbortSignal): Promise<void> {
      // Rejects with what keeps it from being used, or with the signal's reason.
      await (await opening).whenOpened(signal);
      if (withoutJournal !== null) throw withoutJournal.error;
    },
    async look(): Promise<Looked> {
      if (!(await opening).opened()) return { ...unknown("the store is not open yet"), unreadable };
      const check = await within(clock, port.validatePersistence(), STORE_WAIT_MS);
      await within(clock, reconcile(), STORE_WAIT_MS).catch((error) => lines.storeFailed("reconcile", errorText(error)));
      return { ...(check ?? unknown(`no answer within ${STORE_WAIT_MS} ms`)), unreadable };
    },
    async close(): Promise<void> {
      closing = true;
      const mg = await opening.catch(() => null);
      await worker?.stop();
      await mg?.close();
    },
  };
}

const unknown = (reason: string): PersistenceCheck => ({ state: "unknown", reason, checked: {}, attested: null });

async function firstOf(store: Store, { reservation_id: key, tenant_id: tenantId }: FinalizeRequest): Promise<MessageView | null> {
  return (await store.list({ topic: TOPIC, tenantId, key, limit: 1 }).catch(() => null))?.data[0] ?? null;
}

/** The person who closed it decided for good: a reservation that comes again is not kept again, and the answer says so. */
async function closedWords(store: Store, { id, resolution }: MessageView): Promise<string> {
  const { provenance } = await store.history(id).catch(() => ({ provenance: [] }));
  const { actor = "an unknown person", reason = null } = provenance.at(-1) ?? {};
  const by = `${resolution} by ${actor} (${reason ?? "no reason given"})`;
  return `closed: ${by}; nothing was kept again: replay message ${id} if it is owed`;
}

function remember(seen: Map<string, Seen>, id: string, request: FinalizeRequest): void {
  if (seen.size >= SEEN_MAX) for (const oldest of seen.keys()) if (seen.delete(oldest)) break;
  if (!seen.has(request.reservation_id)) seen.set(request.reservation_id, { id, request });
}

/** Whether it contradicts what was kept here before and is still owed. `store` null: it is away, and nothing else knows. */
async function contradicts(request: FinalizeRequest, { id, request: first }: Seen, store: Store | null): Promise<boolean> {
  if (entries.sameObligation(first, request)) return false;
  const view = (await store?.get(id).catch(() => null)) ?? null;
  return view === null || entries.standsTo(view, first) === "owed";
}

/** What each tenant owes, of what waits in the store; one page holds more than is asked for. */
async function owedBy(store: Store): Promise<Map<string, bigint>> {
  const owed = new Map<string, bigint>();
  for (const status of ["pending", "processing"] as const) {
    const { data } = await store.list({ topic: TOPIC, status, limit: LIMITS.pageMax });
    for (const { tenantId, payload } of data) {
      if (tenantId === null) continue;
      owed.set(tenantId, (owed.get(tenantId) ?? 0n) + (parseMicro(entries.fieldsOf(payload).actual_cost_micro) ?? 0n));
    }
  }
  return owed;
}
