/**
 * The audit client for producers: write() tries the audit service at once, falls back to a store that goes on trying, and returns
 * what became of the record. It never throws and never takes longer than its budget, so no business operation blocks or
 * fails because of an audit record (AUD-3). One generic write, and one helper for each registered type.
 */
import { createMakegood, type Makegood, type MakegoodOptions } from "../../create.ts";
import type { DeliverResult } from "../../delivery/deliver.ts";
import { errorText } from "../../message/errors.ts";
import type { RetryConfig } from "../../message/retry-policy.ts";
import { payloadText } from "../../message/validate.ts";
import type { EventListener } from "../../observe/events.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import { type Random, systemRandom } from "../../platform/random.ts";
import type { Sink } from "../../sink/sink.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Store } from "../../store/store.ts";
import { type Draft, draftOf, quarantineOf, withDefaults } from "./draft.ts";
import { createOpening } from "./opening.ts";
import {
  type AiDecisionData,
  type AuditEnvelope,
  type EffectivenessData,
  type ExecutionData,
  isEventId,
  type NotificationData,
  type OrchestrationData,
  type SignalProcessingData,
} from "./record.ts";
import { redact } from "./redact.ts";
import { AUDIT_CLIENT_NAMESPACE } from "./registry.ts";
import { senderSinks, senderTopics } from "./sender.ts";
import { createWaitingRoom } from "./waiting-room.ts";

export interface AuditClientOptions {
  /** The audit service, for example http://data-storage:8080 (the seed's DATA_STORAGE_URL). */
  readonly url: string;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The actor of records that name none. */
  readonly actor?: string | undefined;
  /** Where records wait that the service could not take. Absent: memory, which survives nothing. */
  readonly store?: Store | undefined;
  readonly secondary?: MakegoodOptions["secondary"];
  readonly journal?: MakegoodOptions["journal"];
  readonly errorLog?: MakegoodOptions["errorLog"];
  /** One try at the service. */
  readonly timeoutMs?: number | undefined;
  /** A whole write, whatever happens. */
  readonly budgetMs?: number | undefined;
  /** Instead of the policy `audit`. */
  readonly retry?: RetryConfig | undefined;
  /** False: this process only writes; another one with the same store delivers what waits. */
  readonly work?: boolean | undefined;
  readonly pollMs?: number | undefined;
  readonly onEvent?: EventListener | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
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

export interface AuditClient extends AsyncDisposable {
  /** `type`: a registered type or one of its other names. */
  write(type: string, record: AuditEnvelope): Promise<AuditResult>;
  orchestration(record: AuditEnvelope<OrchestrationData>): Promise<AuditResult>;
  signalProcessing(record: AuditEnvelope<SignalProcessingData>): Promise<AuditResult>;
  aiDecision(record: AuditEnvelope<AiDecisionData>): Promise<AuditResult>;
  execution(record: AuditEnvelope<ExecutionData>): Promise<AuditResult>;
  notification(record: AuditEnvelope<NotificationData>): Promise<AuditResult>;
  effectiveness(record: AuditEnvelope<EffectivenessData>): Promise<AuditResult>;
  /** How many records wait here; null: the store does not say. */
  pending(): Promise<number | null>;
  /** How many quarantined or undeliverable records a person should look at; null: the store does not say. */
  deadLetters(): Promise<number | null>;
  /** What is behind it, for replay and inspection; null while its store cannot be opened. */
  makegood(): Promise<Makegood | null>;
  /** Bounded by `drainMs` (DA-22); says what is still waiting, which a store that survives nothing loses now. */
  close(options?: { readonly drainMs?: number | undefined }): Promise<{ readonly pending: number | null }>;
}

const TIMEOUT_MS = 3_000;
const REST_MS = 1_500;
const DRAIN_MS = 10_000;
const ASK_MS = 1_000;

export function createAuditClient(options: AuditClientOptions): AuditClient {
  const { clock = systemClock, random = systemRandom, timeoutMs = TIMEOUT_MS } = options;
  const budgetMs = options.budgetMs ?? timeoutMs + REST_MS;
  const store = options.store ?? createMemoryStore({ clock, random });
  const ids = createIds(clock, random);
  const { url, token, headers } = options;
  const sinks = senderSinks({ url, token, headers, clock, timeoutMs });
  const tell = (error: unknown, during: string, consecutive = 1): void =>
    options.onEvent?.({ type: "store_error", during, error: redact(errorText(error)), consecutive });
  const room = createWaitingRoom(sinks, timeoutMs, (error) => tell(error, "audit_waiting_room"));
  const opening = createOpening({
    clock,
    open: () => openMakegood({ ...options, clock, random }, store, sinks),
    failed: (error, consecutive) => tell(error, "audit_open", consecutive),
    ready: (mg) => void room.moveTo(mg),
  });
  let closing: Promise<{ pending: number | null }> | undefined;

  async function write(type: string, record: AuditEnvelope): Promise<AuditResult> {
    let eventId = ids();
    try {
      const given = record as Record<string, unknown> | null;
      if (isEventId(given?.event_id)) eventId = given.event_id;
      const occurredAt = new Date(clock.wallMs()).toISOString();
      const full = withDefaults(given, { event_id: eventId, occurred_at: occurredAt, actor: options.actor });
      const draft = draftOf(type, eventId, full);
      const startMs = clock.monotonicMs();
      const mg = closing !== undefined ? null : await opening.get(Math.min(budgetMs / 3, ASK_MS));
      // What has no text goes along as it is: deliver() refuses it and writes what can be shown of it to the ERROR log.
      const send = ({ topic: name, key, text }: Draft): Promise<DeliverResult> => {
        const leftMs = Math.max(1, budgetMs - (clock.monotonicMs() - startMs));
        if (!mg) return room.write(name, text ?? payloadText(full), key);
        return mg.deliver(name, full, { key, payloadText: text, timeoutMs, budgetMs: leftMs });
      };
      let result = await send(draft);
      // Another record that waits here has its event id: both are kept, and the service will tell which one came second.
      if (result.kind === "refused" && result.code === "key_conflict" && draft.text !== undefined)
        result = await send(
          quarantineOf({ ...draft, text: draft.text }, draft.auditType, "its event id belongs to another record"),
        );
      const answer = resultOf(result, eventId);
      mg?.events.emit({ type: "audit", auditType: draft.auditType, ...RESULTS[answer.kind], code: answer.code });
      return answer;
    } catch (error) {
      tell(error, "audit_write");
      return { kind: "logged", eventId, survives: "nothing", code: "write_failed", error: redact(errorText(error)) };
    }
  }

  const counted = async (which: (status: string, resolution: string | null) => boolean): Promise<number | null> => {
    const mg = await opening.get(ASK_MS);
    const counts = await mg?.store.counts().catch(() => null);
    if (!counts) return null;
    const below = mg?.ladder.status().waiting ?? { journal: 0, memory: 0 };
    const ours = counts.filter((one) => one.topic.startsWith(`${AUDIT_CLIENT_NAMESPACE}/`));
    const stored = ours.filter(({ status, resolution }) => which(status, resolution)).reduce((sum, { count }) => sum + count, 0);
    return stored + (which("pending", null) ? room.size + below.journal + below.memory : 0);
  };
  const pending = () => counted((status) => status === "pending" || status === "processing");

  async function shutDown(drainMs: number): Promise<{ pending: number | null }> {
    await opening.stop();
    const mg = opening.opened;
    if (mg) await room.moveTo(mg);
    const left = mg ? await pending() : room.size;
    await mg?.close({ drainMs });
    await Promise.allSettled([...sinks.values()].map(async (sink) => sink.close?.()));
    for (const one of [options.secondary, store]) await one?.close().catch((error) => tell(error, "audit_close"));
    return { pending: left };
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
    pending,
    deadLetters: () => counted((status, resolution) => status === "dead" && resolution === "open"),
    makegood: () => opening.get(ASK_MS),
    close,
    [Symbol.asyncDispose]: async () => void (await close()),
  };
}

const RESULTS = {
  stored: { result: "success" },
  duplicate: { result: "success" },
  accepted: { result: "success" },
  queued: { result: "fallback" },
  quarantined: { result: "validation_error" },
  logged: { result: "failed" },
} as const;

function resultOf(result: DeliverResult, eventId: string): AuditResult {
  const { survives, code } = result;
  const error = result.error === null ? null : redact(result.error);
  const kind = kindOf(result);
  // What the service holds is as durable as the service says, not as our own store.
  return { kind, eventId, survives: kind === "queued" || kind === "quarantined" ? survives : SURVIVES[kind], code, error };
}

const SURVIVES = { stored: "power-loss", duplicate: "power-loss", accepted: "process-crash", logged: "nothing" } as const;

function kindOf({ kind, status, stored }: DeliverResult): AuditResult["kind"] {
  switch (kind) {
    case "delivered":
      return status === 202 ? "accepted" : "stored";
    case "duplicate":
      return "duplicate";
    case "queued":
      return "queued";
    case "dead":
      return stored === null ? "logged" : "quarantined";
    case "refused":
      return "logged";
  }
}

async function openMakegood(
  options: AuditClientOptions & { clock: Clock; random: Random },
  store: Store,
  sinks: ReadonlyMap<string, Sink>,
): Promise<Makegood> {
  const { secondary, journal, errorLog, pollMs, onEvent, clock, random, retry } = options;
  const topics = senderTopics(sinks, retry);
  // The store stays ours: an opening that failed half way must not close it for the next one.
  const mg = await createMakegood({
    store,
    secondary,
    journal,
    errorLog,
    topics,
    pollMs,
    onEvent,
    clock,
    random,
    sharedStore: true,
  });
  if (options.work ?? true) mg.work({ topics: [`${AUDIT_CLIENT_NAMESPACE}/*`] });
  return mg;
}
