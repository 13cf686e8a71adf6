/**
 * The door `makegood/webhook`: for receivers of signed requests. It loads node:crypto and nothing else.
 */
export { checkSecret, generateSecret } from "./secret.ts";
export { type RawBody, type SignedHeaders, signWebhook, type WebhookToSign } from "./sign.ts";
export { type SignedRequest, type VerifiedWebhook, verifyWebhook, type WebhookHeaders, type WebhookRefusal } from "./verify.ts";
