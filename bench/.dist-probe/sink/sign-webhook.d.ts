import { type Random } from "../platform/random.ts";
/** A new secret of 32 random bytes. Show it once; it cannot be read back. */
export declare function generateSecret(random?: Random): string;
/** The reason why a secret cannot be used, or null. Never quotes the secret. */
export declare function checkSecret(secret: unknown): string | null;
/** The `webhook-signature` header: one signature for each secret, so that a receiver may know the old one or the new one. */
export declare function signWebhook(id: string, timestampS: number, body: string | Uint8Array, secrets: readonly string[]): string;
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
/**
 * For receivers: true when `body` (the raw bytes, before any parsing) was signed with one of the secrets within the
 * tolerance, past or future. Takes the same time wherever a signature differs. Throws only when a secret is malformed.
 */
export declare function verifyWebhook(headers: WebhookHeaders, body: string | Uint8Array, secrets: string | readonly string[], nowMs: number, toleranceMs?: number): boolean;
