/**
 * The headers that every HTTP request of a sink carries: the effect's identity, where the message stands and its trace.
 * What does not change between attempts is the same text in every attempt (I7).
 */
import { createHash } from "node:crypto";
import type { Delivery } from "./sink.ts";

/** Names and values alternating, as undici takes them. */
export type FlatHeaders = readonly string[];

const BARE = /^[\x21-\x24\x26-\x7e]+$/;

/**
 * Any text as a header value. Visible ASCII without `%` stands as it is; everything else is percent-encoded as by
 * encodeURIComponent. A `%` alone is encoded too, so that two different keys never become the same header: to a
 * receiver that would be one effect instead of two.
 */
export function headerText(text: string): string {
  if (BARE.test(text)) return text;
  // A lone surrogate has no UTF-8 and makes encodeURIComponent throw; a store could not have kept it either.
  return encodeURIComponent(Buffer.from(text).toString());
}

/** The configured headers with the defaults that they may override. */
export function fixedHeaders(configured: Readonly<Record<string, string>> = {}): FlatHeaders {
  const all = new Map([
    ["content-type", "application/json"],
    ["user-agent", "makegood"],
  ]);
  for (const [name, value] of Object.entries(configured)) all.set(name.toLowerCase(), value);
  return [...all].flat();
}

export function messageHeaders(delivery: Delivery): string[] {
  const headers = [
    "idempotency-key",
    headerText(delivery.idempotencyKey),
    "makegood-message-id",
    headerText(delivery.id),
    "makegood-topic",
    headerText(delivery.topic),
    "makegood-attempt",
    String(delivery.attempt),
    "traceparent",
    traceparentOf(delivery),
  ];
  if (delivery.tenantId !== null && delivery.tenantId !== "") headers.push("makegood-tenant", headerText(delivery.tenantId));
  return headers;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const NO_PARENT = "0".repeat(16);
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** 32 digits; for almost every message its id without the dashes. */
const hexOf = (id: string): string =>
  UUID.test(id)
    ? id.slice(0, 8) + id.slice(9, 13) + id.slice(14, 18) + id.slice(19, 23) + id.slice(24)
    : createHash("sha256").update(id).digest("hex").slice(0, 32);

/** The message's own trace, or one made of its id: all attempts of a message are one trace even if nobody started it. */
export function traceparentOf(delivery: Pick<Delivery, "id" | "traceparent">): string {
  const given = delivery.traceparent;
  if (given !== null && TRACEPARENT.test(given)) return given;
  const { id } = delivery;
  const hex = hexOf(id);
  const parent = hex.slice(16);
  // All zeros would mean that there is no parent (and cover an id of zeros).
  if (parent === NO_PARENT) return traceparentOf({ id: `zero ${id}`, traceparent: null });
  // Sampled (01): a receiver that follows its parent's decision would otherwise never record a delivery.
  return `00-${hex}-${parent}-01`;
}
