/** Name-based ids (UUID version 5): the same fingerprint is the same `failure_match_id` in every process, without asking anyone. */
import { createHash } from "node:crypto";

/** Our own namespace; it never changes, because every id depends on it. */
export const FAILURE_MATCH_NAMESPACE = "5f1c7c0e-8f0b-5d3a-9c64-2b7a1e90d4f3";

export function failureMatchId(fingerprint: string): string {
  const namespace = Buffer.from(FAILURE_MATCH_NAMESPACE.replaceAll("-", ""), "hex");
  const bytes = createHash("sha1").update(namespace).update(fingerprint, "utf8").digest().subarray(0, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
