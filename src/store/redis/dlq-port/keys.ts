/**
 * The names of the port's Redis keys. All stand under one hash tag, so that one script may touch several of them on a cluster
 * (DF-25); `prefix: "finn:hounfour:dlq"` gives the seeds' plain names, for a single node.
 */

export const DLQ_PREFIX = "{finn:hounfour:dlq}";

export interface DLQKeys {
  /** Hash: the entry, one field per field, and its claim. */
  entry(id: string): string;
  /** `entry(id)` without the id, to recognise one while scanning. */
  readonly entryPrefix: string;
  /** Sorted set: id by when it is next in sight of getReady. */
  readonly schedule: string;
  /** Sorted set: id by created_at. */
  readonly created: string;
  /** Sorted set: id by the end of its lease. */
  readonly claimed: string;
  /** Hash: a terminal record. It never expires while it is open. */
  terminal(id: string): string;
  /** Sorted set: ids of open terminal records by when they became one. */
  readonly terminals: string;
  /** Sorted set: `kind:nonce:id` by when it was found. */
  readonly quarantine: string;
  /** What is left of it, whatever its type. */
  quarantined(nonce: string, id: string): string;
}

export function createKeys(prefix: string): DLQKeys {
  return {
    entry: (id) => `${prefix}:entry:${id}`,
    entryPrefix: `${prefix}:entry:`,
    schedule: `${prefix}:schedule`,
    created: `${prefix}:created`,
    claimed: `${prefix}:claimed`,
    terminal: (id) => `${prefix}:terminal:${id}`,
    terminals: `${prefix}:terminals`,
    quarantine: `${prefix}:quarantine`,
    quarantined: (nonce, id) => `${prefix}:quarantine:${nonce}:${id}`,
  };
}

/** A quarantine member taken apart; a nonce has no colon. */
export function parseMember(member: string): { kind: string; nonce: string; id: string } {
  const [kind = "", nonce = ""] = member.split(":", 2);
  return { kind, nonce, id: member.slice(kind.length + nonce.length + 2) };
}
