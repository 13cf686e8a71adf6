/**
 * The JSON shapes of the HTTP API, in the snake_case of the kernel's words, and how messages become them. Optional fields
 * may be added later; none is changed or removed.
 */
import { shown } from "../../client/standing.ts";
import type { AttemptRecord, MessageView, ProvenanceRecord } from "../../message/message.ts";
import type { Standing } from "../../message/why-pending.ts";
import type { Hold } from "../../message/worker-note.ts";
import type { Page, StatusCount } from "../../store/store.ts";

export interface EnqueuedJson {
  readonly id: string;
  readonly inserted: boolean;
}

export interface AttemptJson {
  readonly attempt: number;
  readonly outcome: AttemptRecord["outcome"];
  readonly counted: boolean;
  readonly at: string;
  readonly duration_ms: number | null;
  readonly code: string | null;
  readonly error: string | null;
  readonly next_attempt_at: string | null;
}

export interface ProvenanceJson {
  readonly at: string;
  readonly actor: string;
  readonly action: ProvenanceRecord["action"];
  readonly reason: string | null;
}

/** A message without its payload, which is never built from a value but spliced in as text. */
export interface MessageJson {
  readonly id: string;
  readonly topic: string;
  readonly tenant_id: string | null;
  readonly key: string | null;
  readonly ordering_key: string | null;
  readonly priority: number;
  readonly status: MessageView["status"];
  readonly attempts: number;
  readonly generation: number;
  readonly revision: number;
  readonly resolution: MessageView["resolution"];
  /** A word: what keeps it from being attempted. */
  readonly held_reason: string | null;
  /** Why it is pending, always told: what holds it, when it is due, or that it waits for its turn. */
  readonly pending_reason: Hold | null;
  readonly next_attempt_at: string | null;
  readonly created_at: string;
  readonly died_at: string | null;
  readonly last_error: string | null;
  readonly last_code: string | null;
  readonly schema_version: number | null;
  readonly traceparent: string | null;
}

export interface CountJson {
  readonly topic: string;
  readonly status: StatusCount["status"];
  readonly resolution: StatusCount["resolution"];
  readonly count: number;
  readonly oldest_ms: number | null;
}

const instant = (date: Date | null): string | null => (date === null ? null : date.toISOString());

export function messageJson(message: MessageView, standing: Standing): MessageJson {
  const { heldReason, pendingReason } = shown(message, standing);
  return {
    id: message.id,
    topic: message.topic,
    tenant_id: message.tenantId,
    key: message.key,
    ordering_key: message.orderingKey,
    priority: message.priority,
    status: message.status,
    attempts: message.attempts,
    generation: message.generation,
    revision: message.revision,
    resolution: message.resolution,
    held_reason: heldReason,
    pending_reason: pendingReason,
    next_attempt_at: instant(message.dueAt),
    created_at: message.createdAt.toISOString(),
    died_at: instant(message.diedAt),
    last_error: message.lastError,
    last_code: message.lastCode,
    schema_version: message.schemaVersion,
    traceparent: message.traceparent,
  };
}

export function attemptJson(record: AttemptRecord): AttemptJson {
  return {
    attempt: record.attempt,
    outcome: record.outcome,
    counted: record.counted,
    at: record.at.toISOString(),
    duration_ms: record.durationMs,
    code: record.code,
    error: record.error,
    next_attempt_at: instant(record.nextDueAt),
  };
}

export function provenanceJson(record: ProvenanceRecord): ProvenanceJson {
  return { at: record.at.toISOString(), actor: record.actor, action: record.action, reason: record.reason };
}

/** I8: the payload is spliced in as the text it is; parsing and printing it again would change numbers and escapes. */
export function withPayload(object: object, payload: string): string {
  return `${JSON.stringify(object).slice(0, -1)},"payload":${payload}}`;
}

/** A page of messages as JSON text, each with or without its payload. */
export function pageText(page: Page, standing: (topic: string) => Standing, payloads: boolean): string {
  const data = page.data.map((message) => {
    const object = messageJson(message, standing(message.topic));
    return payloads ? withPayload(object, message.payload) : JSON.stringify(object);
  });
  return `{"data":[${data.join(",")}],"next_cursor":${JSON.stringify(page.nextCursor)}}`;
}

export function countJson(count: StatusCount): CountJson {
  const { topic, status, resolution, oldestMs } = count;
  return { topic, status, resolution, count: count.count, oldest_ms: oldestMs };
}
