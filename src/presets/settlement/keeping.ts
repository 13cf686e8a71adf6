/**
 * Where obligations are kept: one Makegood with one topic. Its deliver() makes the direct try and walks the ladder, which is
 * the only fallback; its worker makes the replays. A store that is not open yet is a store that is away, and nothing here waits for it.
 */
import type { DeliverResult } from "../../client/deliver.ts";
import { createMakegood, type Makegood } from "../../create.ts";
import { errorText } from "../../message/errors.ts";
import type { MessageView, NewMessage } from "../../message/message.ts";
import { isTraceparent } from "../../message/validate.ts";
import type { MakegoodEvent } from "../../observe/events.ts";
import { inBackground } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import * as entries from "../../store/redis/dlq-port/entry.ts";
import { bound } from "../../store/redis/dlq-port/obligations.ts";
import type { Store } from "../../store/store.ts";
import type { AnyTopic } from "../../topic/topic.ts";
import type { KeptEntry } from "./lines.ts";
import type { SettlementOptions } from "./options.ts";
import type { FinalizeRequest, FinalizeResult, Obligation } from "./request.ts";
import { settlementTopic, TOPIC, type TopicParts } from "./topic.ts";

export interface KeepingOptions extends TopicParts, Pick<SettlementOptions, "makegood" | "journalDir"> {
  readonly store: Store;
  /** What a result calls the store itself. */
  readonly place: string;
  readonly random: Random;
  readonly newId: () => string;
  readonly journalRefused: (error: unknown) => void;
}

/** For a store that is just being opened: then it is away until it is open. And for a dead letter to find its place. */
const WAIT_MS = 1_500;
const IDEMPOTENT: FinalizeResult = { ok: true, status: "idempotent" };

type Seen = { readonly id: string; readonly request: FinalizeRequest };
type KeptAs = Pick<DeliverResult, "kind" | "code" | "error" | "status" | "stored" | "survives" | "id">;

export function createKeeping(options: KeepingOptions) {
  const { store, clock, lines, newId, timeoutMs, place, journalDir } = options;
  const { name: kind } = store.traits;
  /** What this client has kept: a repeat is then the same message on every rung, and a contradiction is seen while the store is away. */
  const seen = new Map<string, Seen>();
  const dead = new Set<string>();
  let describing: Promise<void> = Promise.resolve();
  let failed = "";
  let ladder: Makegood["ladder"] | null = null;
  // Made at once: a wrong setting is said where the client is made.
  const opening = open([settlementTopic(options)]);

  async function open(topics: readonly AnyTopic[]): Promise<Makegood> {
    const tell = (error: unknown): void => lines.storeFailed("open", error);
    const mg = await createMakegood({
      ...options.makegood,
      ...(journalDir === undefined ? {} : { journal: { directory: journalDir } }),
      ...{ store, topics, sharedStore: true, openWithinMs: WAIT_MS, startsWithoutStore: "even-refused", storeRefused: tell },
      ...{ clock: inBackground(clock), random: options.random, log: "silent" },
      journalRefused(error) {
        options.journalRefused(error);
        tell(error);
      },
    });
    mg.events.on(heard);
    ladder = mg.ladder;
    return mg;
  }

  function heard(event: MakegoodEvent): void {
    if (event.type === "rung_failed") failed = event.error;
    if (event.type === "journal_note") lines[event.what === "taken_over" ? "journalTaken" : "journalNote"]({ ...event });
    if (event.type === "drained" && event.moved > 0) lines.promoted({ count: event.moved, store: kind });
    if (event.type === "quarantined" && event.topic === TOPIC) void contradictsBelow(event.id, event.key ?? "").catch(() => {});
    if (event.type === "absorbed" && event.topic === TOPIC) void closedAbove(event.by).catch(() => {});
    if (event.type !== "attempt" || event.topic !== TOPIC) return;
    if (event.status === "dead" && event.attempt > 0) {
      dead.add(event.id);
      void described();
    }
    if (event.status === "delivered") for (const [key, { id }] of seen) if (id === event.id) seen.delete(key);
  }

  /** One after the other: each is described once. */
  function described(): Promise<void> {
    describing = describing.then(describeDead);
    return describing;
  }

  /** What died below the store is described when the store has it. */
  async function describeDead(): Promise<void> {
    for (const id of dead) {
      const view = (await store.get(id).catch(() => null)) ?? null;
      if (view === null) continue;
      dead.delete(id);
      const history = await store.history(id).catch(() => ({ attempts: [], provenance: [] }));
      lines.terminal(entries.entryOf(view, history), kind);
    }
  }

  /** On its way up it met another one; its rung has given it up. */
  async function contradictsBelow(id: string, key: string): Promise<void> {
    const mine = seen.get(key);
    if (mine?.id !== id) return;
    seen.delete(key);
    const first = await firstOf(store, mine.request);
    if (first === null || entries.standsTo(first, mine.request) === "other") await conflict(await opening, mine.request, first);
  }

  /** A reservation that came again while the store was away, and that a person has closed meanwhile. */
  async function closedAbove(id: string): Promise<void> {
    const view = await store.get(id);
    const { entry: _, problem: __, ...request } = entries.fieldsOf(view?.payload ?? "");
    if (view && entries.standsTo(view, request) === "closed") await sayClosed(view, request);
  }

  /** The person who closed it decided for good: a reservation that comes again is not kept again, and the answer says so. */
  async function sayClosed({ id, resolution }: MessageView, request: FinalizeRequest): Promise<string> {
    const { provenance } = await store.history(id).catch(() => ({ provenance: [] }));
    const { actor = "an unknown person", reason } = provenance.at(-1) ?? {};
    const by = `${resolution} by ${actor} (${reason ?? "no reason given"})`;
    const words = `closed: ${by}; nothing was kept again: replay message ${id} if it is owed`;
    lines.closed(entryOf(request, words), String(resolution), place);
    return words;
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
    if (first && (await contradicts(request, first, away ? null : store))) return conflict(mg, request, first);
    const traceparent = isTraceparent(trace) ? trace : null;
    const same = first && away ? { id: first.id } : {};
    // A reservation that comes again is the same message, with any trace.
    const payload = entries.payloadOf(first ? { ...request, trace_id: first.request.trace_id } : request);
    const result = await mg.deliver(TOPIC, payload, { key, tenantId, timeoutMs, traceparent, ...same });
    if (result.code === "key_conflict") return again(mg, request, await firstOf(store, request));
    if (result.kind === "delivered" || result.kind === "duplicate") {
      seen.delete(key);
      // `duplicate`: the receiver knew it, or the message that had the key first was delivered meanwhile.
      return result.kind === "delivered" ? { ok: true, status: "finalized" } : IDEMPOTENT;
    }
    const ended = result.kind === "dead" ? await store.get(result.id).catch(() => null) : null;
    if (ended && entries.standsTo(ended, request) === "closed") return again(mg, request, ended);
    if (result.stored !== null && !seen.has(key)) seen.set(key, { id: result.id, request });
    bound(seen);
    return keptResult(request, result);
  }

  /** The reservation came before: what became of that message is the answer. */
  async function again(mg: Makegood, request: FinalizeRequest, first: MessageView | null): Promise<FinalizeResult> {
    const standing = first === null ? "other" : entries.standsTo(first, request);
    if (first === null || standing === "other") return conflict(mg, request, first);
    if (standing === "settled") return IDEMPOTENT;
    const { survives } = mg.store.traits;
    if (standing === "owed") return kept(request, "waiting: the same obligation waits already", "primary", survives);
    const closed = first.resolution as "resolved" | "discarded";
    return { ...kept(request, await sayClosed(first, request), "primary", survives), closed };
  }

  /** The first stands, and this one is a dead letter of its own. */
  async function conflict(mg: Makegood, request: FinalizeRequest, first: Pick<Seen, "id"> | null): Promise<FinalizeResult> {
    const reason = `key_conflict: reservation ${request.reservation_id} is kept with another cost or tenant; the first stands`;
    const entry = entryOf(request, reason);
    lines.conflict({ entry, store: place });
    return keep(mg, request, entries.conflictOf({ ...entry, created_at: undefined }, first?.id ?? "?", newId()));
  }

  /** A dead letter from the start: nothing of it is sent. */
  async function keep(mg: Makegood, request: FinalizeRequest, message: NewMessage): Promise<FinalizeResult> {
    const put = await mg.ladder.put({ message, atMs: clock.wallMs() }, clock.monotonicMs() + WAIT_MS);
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
    if (stored !== "primary" && stored !== null) lines.degraded({ from: kind, to: place, reason: failed });
    if (how === "refused") lines.storeFailed("deliver", reason, entry);
    if (how === "dead") lines.terminal(entry, place);
    if (how === "queued" || (survives === "nothing" && how !== "refused")) lines.kept(entry, place, survives !== "nothing");
    return answer;
  }

  function kept({ reservation_id: id }: FinalizeRequest, reason: string, stored: string, survives: DeliverResult["survives"]) {
    return { ok: false, status: "dlq", reason, id, stored: stored === "primary" ? place : stored, survives } as const;
  }

  /** Below the last rung: nothing kept it, so the log does. */
  function lost({ request }: Obligation, error: unknown): FinalizeResult {
    const reason = `internal_error: ${errorText(error)}`;
    lines.storeFailed("finalize", error, { ...entryOf(request, reason), id: newId() });
    return kept(request, reason, "log", "nothing");
  }

  function entryOf(request: FinalizeRequest, reason: string): KeptEntry {
    const created_at = new Date(clock.wallMs()).toISOString();
    return { ...request, reason, response_status: null, attempt_count: 1, created_at };
  }

  /** Whether everything that is kept now, and what comes next, would survive this process. */
  const durable = (): boolean => (ladder?.status().durable ?? "nothing") !== "nothing";

  return { opening, finalize, lost, described, durable };
}

async function firstOf(store: Store, { reservation_id: key, tenant_id: tenantId }: FinalizeRequest): Promise<MessageView | null> {
  return (await store.list({ topic: TOPIC, tenantId, key, limit: 1 }).catch(() => null))?.data[0] ?? null;
}

/** Whether it contradicts what was kept here before and is still owed. `store` null: it is away, and nothing else knows. */
async function contradicts(request: FinalizeRequest, { id, request: first }: Seen, store: Store | null): Promise<boolean> {
  if (entries.sameObligation(first, request)) return false;
  const view = (await store?.get(id).catch(() => null)) ?? null;
  return view === null || entries.standsTo(view, first) === "owed";
}
