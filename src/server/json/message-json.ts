/**
 * How messages become the shapes of the contract. Optional fields may be added there later; none is changed or removed.
 */
import type { z } from "zod";
import { shown } from "../../client/standing.ts";
import { type attempt, type intervention, message } from "../../contract/messages.ts";
import type { MessageView } from "../../message/message.ts";
import type { Standing } from "../../message/why-pending.ts";
import type { Page } from "../../store/store.ts";
import { wireOf } from "./wire.ts";

export type MessageJson = z.output<typeof message>;
export type AttemptJson = z.output<typeof attempt>;
export type ProvenanceJson = z.output<typeof intervention>;

export const messageJson = (found: MessageView, standing: Standing): MessageJson => wireOf(message, shown(found, standing));

/** I8: the payload is spliced in as the text it is; parsing and printing it again would change numbers and escapes. */
export function withPayload(object: object, payload: string, name = "payload"): string {
  return `${JSON.stringify(object).slice(0, -1)},"${name}":${payload}}`;
}

/** A page of messages as JSON text, each with or without its payload. */
export function pageText(page: Page, standing: (topic: string) => Standing, payloads: boolean): string {
  const data = page.data.map((message) => {
    const object = messageJson(message, standing(message.topic));
    return payloads ? withPayload(object, message.payload) : JSON.stringify(object);
  });
  return `{"data":[${data.join(",")}],"next_cursor":${JSON.stringify(page.nextCursor)}}`;
}
