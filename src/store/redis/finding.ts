/**
 * One fact about a server's durability, and how sure it is: what it said, or that it did not say.
 */
export type Verdict = "verified" | "failed" | "unknown";

export interface Finding {
  readonly name: "appendonly" | "appendfsync" | "append-only-file" | "maxmemory-policy" | "maxmemory" | "replication";
  readonly verdict: Verdict;
  /** What the server said; null when it did not. */
  readonly value: string | null;
  /** The operator vouched for it. */
  readonly attested: boolean;
  /** Without it accepted messages can be lost; the others are advice. */
  readonly required: boolean;
  readonly detail: string;
}
