/**
 * How messages become the shapes of the contract. Optional fields may be added there later; none is changed or removed.
 */
import type { z } from "zod";
import { shown } from "../../client/standing.ts";
import { attempt, intervention, message } from "../../contract/messages.ts";
import type { AttemptRecord, MessageView, ProvenanceRecord } from "../../message/message.ts";
import type { Standing } from "../../message/why-pending.ts";
import type { Page, StatusCount } from "../../store/store.ts";
import { wireOf } from "./wire.ts";

export type MessageJson = z.output<typeof message>;
export type AttemptJson = z.output<typeof attempt>;
export type ProvenanceJson = z.output<typeof intervention>;

export interface CountJson {
  readonly topic: string;
  readonly status: StatusCount["status"];
  readonly resolution: StatusCount["resolution"];
  readonly count: number;
  readonly oldest_ms: number | null;
}

export function messageJson(found: MessageView, standing: Standing): MessageJson {
  const { heldReason, pendingReason } = shown(found, standing);
  return wireOf(message, found, { held_reason: heldReason, pending_reason: pendingReason });
}

export const attemptJson = (record: AttemptRecord): AttemptJson => wireOf(attempt, record, {});

export const provenanceJson = (record: ProvenanceRecord): ProvenanceJson => wireOf(intervention, record, {});

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
