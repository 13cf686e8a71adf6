/**
 * What a Redis stream says, as plain values: entries and pending lists out of RESP2 replies of any client. Nothing
 * here trusts a reply's shape: what is not an entry is left out, and a deleted one is told apart from a missing one.
 */

export interface StreamEntry {
  /** `milliseconds-sequence`. */
  readonly id: string;
  /** In the order of the entry; where a field comes twice, the last one stands. */
  readonly fields: Readonly<Record<string, string>>;
}

export interface PendingEntry {
  readonly id: string;
  readonly consumer: string;
  readonly idleMs: number;
  /** How often it was handed out. */
  readonly deliveries: number;
}

const array = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** The entries of XRANGE or XCLAIM; one that was deleted meanwhile has no fields and is left out. */
export function toEntries(reply: unknown): StreamEntry[] {
  return array(reply).flatMap((one): StreamEntry[] => {
    const [id, flat] = array(one);
    return id == null || !Array.isArray(flat) ? [] : [{ id: String(id), fields: toFields(flat) }];
  });
}

function toFields(flat: readonly unknown[]): Record<string, string> {
  // Names come from outside: one of them may be __proto__.
  const fields: Record<string, string> = Object.create(null);
  for (let i = 0; i + 1 < flat.length; i += 2) fields[String(flat[i])] = String(flat[i + 1]);
  return fields;
}

/** The entries of XREADGROUP on one stream; none when the wait was in vain. */
export function toRead(reply: unknown): StreamEntry[] {
  return array(reply).flatMap((stream) => toEntries(array(stream)[1]));
}

export function toPending(reply: unknown): PendingEntry[] {
  return array(reply).map((one) => {
    const [id, consumer, idleMs, deliveries] = array(one);
    return { id: String(id), consumer: String(consumer), idleMs: Number(idleMs), deliveries: Number(deliveries) };
  });
}

/** A reply of names and values in turn, as XINFO gives them. */
export function toRecord(reply: unknown): Record<string, unknown> {
  const flat = array(reply);
  const record: Record<string, unknown> = Object.create(null);
  for (let i = 0; i + 1 < flat.length; i += 2) record[String(flat[i])] = flat[i + 1];
  return record;
}

/** A key beside the stream that a cluster keeps on the same node, so that one script may touch both. */
export function siblingKey(stream: string, name: string): string {
  return /\{[^}]+\}/.test(stream) ? `${stream}:${name}` : `{${stream}}:${name}`;
}

/** What decides on which node of a cluster a key is kept. */
export function hashTag(key: string): string {
  return /\{([^}]+)\}/.exec(key)?.[1] ?? key;
}
