/**
 * Signatures of Standard Webhooks 1.0.0 (v1, HMAC-SHA256 over `id.timestamp.body`). What is signed is the exact bytes that are sent.
 * It is the one place where they are made: the webhook sink and receivers' tests sign here, and verification compares with it.
 */
import { createHmac } from "node:crypto";
import { MakegoodError } from "../message/errors.ts";
import { systemClock } from "../platform/clock.ts";
import { keysOf } from "./secret.ts";

/** As it is on the wire, before any parsing. */
export type RawBody = string | Uint8Array | ArrayBuffer;

export interface WebhookToSign {
  /** The same over all attempts of a message. */
  readonly id: string;
  readonly body: RawBody;
  /** The newest first. Each of them signs, so that a receiver may know the old one or the new one. */
  readonly secrets: string | readonly string[];
  /** The time of the attempt; absent: now. */
  readonly atMs?: number | undefined;
}

export interface SignedHeaders {
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
}

/** The three headers of a signed request. */
export function signWebhook({ id, body, secrets, atMs = systemClock.wallMs() }: WebhookToSign): SignedHeaders {
  // A dot inside an id would let `a.1` + `2` pass as `a` + `1.2`.
  if (id.includes(".")) throw new MakegoodError("invalid_message", `a webhook id must not contain a dot: ${id}`, { id });
  const timestamp = String(Math.floor(atMs / 1_000));
  const signatures = keysOf(secrets).map((key) => `v1,${signature(key, id, timestamp, body)}`);
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}

/** One signature, in base64. */
export function signature(key: Uint8Array, id: string, timestamp: string, body: RawBody): string {
  const bytes = body instanceof ArrayBuffer ? new Uint8Array(body) : body;
  if (typeof bytes !== "string" && !ArrayBuffer.isView(bytes)) {
    const text = "the body must be the raw text or bytes of the request: what was parsed and is written again has other bytes";
    throw new MakegoodError("invalid_payload", text);
  }
  return createHmac("sha256", key).update(`${id}.${timestamp}.`).update(bytes).digest("base64");
}
