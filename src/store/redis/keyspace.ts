/**
 * The names of the store's keys, all under one hash tag, so that one script may touch any of them in a cluster too (DF-25).
 * One store is one shard. What is known before a script runs is declared in its KEYS.
 */
import { MakegoodError } from "../../message/errors.ts";

export interface Keyspace {
  /** What every key begins with: `{prefix}:`, or the prefix itself where it has a hash tag of its own. */
  readonly root: string;
  readonly channel: string;
  /** A key by its name below the root. */
  key(name: string): string;
  message(id: string): string;
  lane(lane: string): string;
  lease(lease: string): string;
  topic(name: string): string;
}

const PREFIX = /^(?:[A-Za-z0-9_.:-]{1,100}|\{[A-Za-z0-9_.:-]{1,100}\}[A-Za-z0-9_.:-]{0,100})$/;

export function createKeyspace(prefix: string): Keyspace {
  if (!PREFIX.test(prefix)) {
    throw new MakegoodError(
      "invalid_config",
      "The prefix of the Redis store may have letters, digits and . _ : -, at most 100.",
      {
        prefix,
      },
    );
  }
  const root = prefix.startsWith("{") ? `${prefix}:` : `{${prefix}}:`;
  return {
    root,
    channel: `${root}wake`,
    key: (name) => root + name,
    message: (id) => `${root}m:${id}`,
    lane: (lane) => `${root}l:${lane}`,
    lease: (lease) => `${root}e:${lease}`,
    topic: (name) => `${root}t:${name}`,
  };
}
