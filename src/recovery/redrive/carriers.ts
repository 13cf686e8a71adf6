/**
 * The messages that carry an effect on where a redrive does not replay the message itself: under a new key, or a copy to another sink of
 * the topic. The payload is the same text, byte for byte (I8).
 */
import { createHash } from "node:crypto";
import { MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { MessageView, NewMessage } from "../../message/message.ts";
import type { Carrier } from "../../message/topic.ts";
import { payloadHash } from "../../message/validate.ts";
import { type CarrierTopic, carrierKey } from "../carrier.ts";
import type { MessageOrigin, RedriveMode } from "./redrive.ts";

export interface CarrierDeps {
  readonly ids: () => string;
  readonly carrierTopic: CarrierTopic;
  readonly origin: (messageId: string) => Promise<MessageOrigin | null>;
}

/** Undefined where the mode needs none. */
export async function carrierFor(
  mode: RedriveMode,
  carrier: Carrier | undefined,
  message: MessageView,
  deps: CarrierDeps,
): Promise<NewMessage | undefined> {
  if (mode === "new_key") return copyOf(message, deps.ids(), message.topic, await nextKey(message, deps.origin));
  if (mode !== "copy") return undefined;
  if (carrier === undefined) {
    throw new MakegoodError("invariant_violated", `a copy of message ${message.id} has no carrier: cancel the redrive`, {});
  }
  return copyOf(message, deps.ids(), await deps.carrierTopic(message.topic, carrier), carrierKey(carrier, message));
}

/** The message again under another identity; everything else, and every byte of its payload, stays. */
export function copyOf(
  message: MessageView,
  id: string,
  topic: string,
  key: string | null,
  payload = message.payload,
): NewMessage {
  const { tenantId, priority, orderingKey, traceparent, schemaVersion } = message;
  const hash = key === null ? "" : payloadHash(payload);
  return {
    id,
    topic,
    tenantId,
    key,
    payload,
    payloadHash: hash,
    delayMs: 0,
    priority,
    orderingKey,
    traceparent,
    schemaVersion,
  };
}

const SUFFIX = /~(\d{1,6})$/;

/** `<key or id>~<n>`, n from 1. A message that was made so itself is counted on, so that keys do not grow with each round. */
export async function nextKey(
  { id, key, generation }: Pick<MessageView, "id" | "key" | "generation">,
  origin: (messageId: string) => Promise<MessageOrigin | null>,
): Promise<string> {
  const made = key === null ? null : SUFFIX.exec(key);
  if (key !== null && made !== null && (await origin(id)) !== null) {
    return suffixed(key.slice(0, made.index), Number(made[1]) + generation + 1);
  }
  return suffixed(key ?? id, generation + 1);
}

/** A key at its limit makes room for the suffix; its digest keeps it apart from others that begin alike. */
function suffixed(key: string, n: number): string {
  const whole = `${key}~${n}`;
  if (Buffer.byteLength(whole) <= LIMITS.keyBytesMax) return whole;
  const tail = `~${createHash("sha256").update(key).digest("hex").slice(0, 16)}~${n}`;
  let head = key;
  while (Buffer.byteLength(head + tail) > LIMITS.keyBytesMax) head = [...head].slice(0, -1).join("");
  return head + tail;
}
