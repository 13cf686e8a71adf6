/**
 * The audit client for producers: write() tries the audit service at once, falls back to a store that goes on trying, and returns
 * what became of the record. It never throws and never takes longer than its budget, so no business operation blocks or
 * fails because of an audit record. One generic write, and one helper for each registered type.
 */
import type { DeliverResult } from "../../client/deliver.ts";
import { textOf } from "../../client/direct-delivery.ts";
import { createMakegood, type Makegood, type MakegoodOptions } from "../../create.ts";
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { Status } from "../../message/message.ts";
import { redact } from "../../message/redact.ts";
import type { DeclaredRetry } from "../../message/retry-policy.ts";
import { payloadHash } from "../../message/validate.ts";
import { type Clock, systemClock, within } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import { type Random, systemRandom } from "../../platform/random.ts";
import { tell } from "../../platform/tell.ts";
import { entryLine, refusedLine } from "../../store/ladder/format/error-line.ts";
import type { HandedDown } from "../../store/ladder/format/handed-down.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { tallyOf, UNSETTLED, withBelow } from "../../store/shared/tally.ts";
import type { Store } from "../../store/store.ts";
import { beside, type Draft, draftOf } from "./draft.ts";
import type { AuditEnvelope, LeastData } from "./record.ts";
import { AUDIT_CLIENT_NAMESPACE, type AuditType } from "./registry.ts";
import { type SenderOptions, senderSinks, senderTopics } from "./sender.ts";

/** `secondary`, `journal` and the rest: as createMakegood takes them. */
export interface AuditClientOptions
  extends Omit<SenderOptions, "timeoutMs" | "clock">,
    Pick<MakegoodOptions, "secondary" | "journal" | "errorLog" | "log" | "pollMs" | "onEvent" | "clock" | "random"> {
  /** The actor of records that name none. */
  readonly actor?: string | undefined;
  /** Where records wait that the service could not take; it stays the caller's. Absent: the journal, else memory and the ERROR log. */
  readonly store?: Store | undefined;
  /** One try at the service. */
  readonly timeoutMs?: number | undefined;
  /** A whole write, in every case. */
  readonly budgetMs?: number | undefined;
  /** Instead of the policy `audit`. */
  readonly retry?: DeclaredRetry | undefined;
  /** False: this process only writes; another one with the same store delivers what waits. */
  readonly work?: boolean | undefined;
}

/**
 * stored: the service has it. duplicate: it had it already. accepted: the service has queued it durably (202). queued: it waits
 * here, as durable as `survives` says. quarantined: it does not fit and is kept as a dead letter. logged: no store took it, its
 * text is in the ERROR log.
 */
export interface AuditResult {
  readonly kind: "stored" | "duplicate" | "accepted" | "queued" | "quarantined" | "logged";
  readonly eventId: string;
  readonly survives: "power-loss" | "process-crash" | "nothing";
  readonly code: string | null;
  readonly error: string | null;
}

/** A whole record, or the seed's own shape: the data alone, with an `id` that says which record it is. */
export type AuditInput<Data extends object = Record<string, unknown>> = AuditEnvelope<Data> | (Data & { readonly data?: never });

/** `aiDecision(record)` is `write("ai-decisions", record)`, with the type of its data. */
type Helper<T extends AuditType> = (record: AuditInput<LeastData<T>>) => Promise<AuditResult>;

export interface AuditClient extends AsyncDisposable {
  readonly orchestration: Helper<"orchestration">;
  readonly signalProcessing: Helper<"signal-processing">;
  readonly aiDecision: Helper<"ai-decisions">;
  readonly execution: Helper<"executions">;
  readonly notification: Helper<"notifications">;
  readonly effectiveness: Helper<"effectiveness">;
  /** `type`: a registered type or one of its other names. */
  write(type: string, record: AuditInput): Promise<AuditResult>;
  /** How many records wait here; null: the store does not say. */
  pending(): Promise<number | null>;
  /** How many quarantined or undeliverable records a person should look at; null: the store does not say. */
  deadLetters(): Promise<number | null>;
  /** What is behind it, for replay and inspection; null while its store cannot be opened. */
  makegood(): Promise<Makegood | null>;
  /** Bounded by `drainMs`; says what is still waiting, which a store that survives nothing loses now. */
  close(options?: { readonly drainMs?: number | undefined }): Promise<{ readonly pending: number | null }>;
}

const TOPICS = `${AUDIT_CLIENT_NAMESPACE}/*`;
const TIMEOUT_MS = 3_000;
const REST_MS = 1_500;
const DRAIN_MS = 10_000;
const ASK_MS = 1_000;

export function createAuditClient(options: AuditClientOptions): AuditClient {
  const { clock = systemClock, random = systemRandom, timeoutMs = TIMEOUT_MS, actor, retry, work = true, onEvent } = options;
  const { budgetMs = timeoutMs + REST_MS, errorLog = (line: string) => void process.stderr.write(`${line}\n`) } = options;
  const ids = createIds(clock, random);
  const failed = (error: unknown, during: string): void =>
    tell(() => onEvent?.({ type: "store_error", during, error: redact(errorText(error)), consecutive: 1 }));
  const store = options.store ?? options.secondary ?? ownStore(options, clock, random);
  const making = createMakegood({
    ...options,
    store,
    secondary: store === options.secondary ? undefined : options.secondary,
    // A store of the caller's is the caller's to close.
    sharedStore: store === options.store || store === options.secondary,
    topics: senderTopics(senderSinks({ ...options, clock, timeoutMs }), retry),
    // Its ladder is the only fallback. A journal that cannot be opened keeps nobody from sending records.
    openWithinMs: 0,
    logsUnsafe: true,
    journalRefused: (error) => failed(error, "audit_journal"),
  });
  making.then((mg) => work && mg.work({ topics: [TOPICS] })).catch((error) => failed(error, "audit_open"));
  let closing: Promise<{ pending: number | null }> | undefined;

  /** A client that is closed tries nothing any more; a store of the caller's may still take the record. */
  async function send(mg: Makegood, draft: Draft, leftMs: number): Promise<DeliverResult> {
    const { topic, key, payloadText, record } = draft;
    if (closing === undefined || payloadText === undefined)
      return mg.deliver(topic, record, { key, payloadText, timeoutMs, budgetMs: leftMs });
    const entry = entryOf(draft, ids(), clock);
    const put = await mg.ladder.put(entry, clock.monotonicMs() + leftMs);
    const closed = { id: entry.message.id, key, code: "closed", error: "the client is closed", status: null, tries: 0 };
    if (put.kind === "stored") return { ...closed, kind: "queued", stored: put.rung, survives: put.survives };
    const code = put.kind === "conflict" ? "key_conflict" : put.code;
    return { ...closed, kind: "refused", code, stored: null, survives: "nothing" };
  }

  async function write(type: string, record: object): Promise<AuditResult> {
    const startMs = clock.monotonicMs();
    const leftMs = (): number => Math.max(1, budgetMs - (clock.monotonicMs() - startMs));
    let draft: Draft | null = null;
    try {
      draft = draftOf(type, record, { newId: ids, actor, occurredMs: clock.wallMs() });
      const mg = await within(clock, making, budgetMs / 3);
      if (!mg) throw new MakegoodError("store_unavailable", "the client could not start in time");
      const { eventId, auditType, payloadText } = draft;
      let result = await send(mg, draft, leftMs());
      if (result.code === "key_conflict" && payloadText !== undefined) {
        const second = beside(AUDIT_CLIENT_NAMESPACE, auditType, eventId, payloadText);
        if (second) result = await send(mg, { ...draft, ...second }, leftMs());
        else result = { ...result, kind: "queued", stored: "primary", survives: mg.store.traits.survives };
      }
      const kind = kindOf(result);
      const { code, error } = result;
      mg.events.emit({ type: "audit", auditType, result: KINDS[kind].result, code });
      const survives = KINDS[kind].survives ?? result.survives;
      return { kind, eventId, survives, code, error: error === null ? null : redact(error) };
    } catch (thrown) {
      const error = redact(errorText(thrown));
      const entry = draft?.payloadText === undefined ? null : entryOf(draft, ids(), clock);
      const line = () => (entry ? entryLine(entry, error, {}) : refusedLine(clock.wallMs(), error, { type }, textOf(record), {}));
      tell(() => errorLog(line()));
      failed(thrown, "audit_write");
      return { kind: "logged", eventId: draft?.eventId ?? ids(), survives: "nothing", code: "write_failed", error };
    }
  }

  async function counted(statuses: readonly Status[]): Promise<number | null> {
    const mg = await making.catch(() => null);
    const waiting = statuses === UNSETTLED;
    const counts = mg?.opened() ? await mg.store.counts().catch(() => null) : waiting ? [] : null;
    if (counts === null) return null;
    const tally = tallyOf(counts, TOPICS, statuses);
    return (waiting && mg ? withBelow(tally, mg.ladder.status(), clock.wallMs()) : tally).count;
  }

  async function shutDown(drainMs: number): Promise<{ pending: number | null }> {
    const pending = await counted(UNSETTLED);
    await (await making.catch(() => null))?.close({ drainMs });
    return { pending };
  }

  async function makegood(): Promise<Makegood | null> {
    const mg = await making.catch(() => null);
    await within(clock, mg?.whenOpened() ?? Promise.resolve(), ASK_MS).catch(() => null);
    return mg?.opened() ? mg : null;
  }

  const close: AuditClient["close"] = ({ drainMs = DRAIN_MS } = {}) => {
    closing ??= shutDown(drainMs);
    return closing;
  };
  return {
    write,
    orchestration: (record) => write("orchestration", record),
    signalProcessing: (record) => write("signal-processing", record),
    aiDecision: (record) => write("ai-decisions", record),
    execution: (record) => write("executions", record),
    notification: (record) => write("notifications", record),
    effectiveness: (record) => write("effectiveness", record),
    pending: () => counted(UNSETTLED),
    deadLetters: () => counted(["dead"]),
    makegood,
    close,
    [Symbol.asyncDispose]: async () => void (await close()),
  };
}

/** What each kind counts as, and what it survives where that is not for our own store to say. */
const KINDS = {
  stored: { result: "success", survives: "power-loss" },
  duplicate: { result: "success", survives: "power-loss" },
  accepted: { result: "success", survives: "process-crash" },
  queued: { result: "fallback", survives: null },
  quarantined: { result: "validation_error", survives: null },
  logged: { result: "failed", survives: "nothing" },
} as const;

function kindOf({ kind, status, stored }: DeliverResult): AuditResult["kind"] {
  if (kind === "delivered") return status === 202 ? "accepted" : "stored";
  if (kind === "dead") return stored === null ? "logged" : "quarantined";
  return kind === "refused" ? "logged" : kind;
}

/** Where records wait of a caller who gave no store: in memory, or below it, where the journal is the first that keeps them. */
function ownStore({ journal }: AuditClientOptions, clock: Clock, random: Random): Store {
  const memory = createMemoryStore({ clock, random });
  if (journal === undefined) return memory;
  return { ...memory, traits: { ...memory.traits, name: "none" }, open: () => new Promise(() => {}) };
}

function entryOf({ topic, key, payloadText: payload = "" }: Draft, id: string, clock: Clock): HandedDown {
  const rest = { tenantId: null, delayMs: 0, priority: 0, orderingKey: null, traceparent: null, schemaVersion: null };
  return { message: { ...rest, id, topic, key, payload, payloadHash: payloadHash(payload) }, atMs: clock.wallMs() };
}
