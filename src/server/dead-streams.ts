/** The streams of dead letters that a configuration names, as one who works on them needs them: Redis, the store, and where archives go. */
import { createStreamFiles } from "../archive/stream-files.ts";
import type { Makegood } from "../create.ts";
import { MakegoodError } from "../message/errors.ts";
import { createIds } from "../platform/ids.ts";
import { systemRandom } from "../platform/random.ts";
import { readAuditEntry, readRecoveryEntry } from "../presets/seed-streams.ts";
import * as redisDoor from "../store/redis/index.ts";
import type { Config } from "./config/config.ts";

type Said = Pick<Config, "streams" | "archive" | "seal_key">;

/** Connects for this one use. */
export type DeadStreams = <T>(name: string, actor: string, use: (parts: redisDoor.Replaying) => Promise<T>) => Promise<T>;

export const STREAM_NAMES = ["audit", "recovery"] as const;

export function deadStreamsOf(config: Said, mg: Makegood): DeadStreams {
  return async (name, actor, use) => {
    const { streams } = config;
    const known = STREAM_NAMES.find((one) => one === name);
    if (streams === null || known === undefined || streams[known] === null)
      throw new MakegoodError(
        "stream_not_found",
        `MAKEGOOD_STREAMS does not name ${name}: it and REDIS_URL say where the stream is`,
        { name },
      );
    const seed = known === "audit" ? redisDoor.AUDIT_STREAM : { ...redisDoor.RECOVERY_STREAM, ...streams.recovery };
    const from = seed.stream ?? "";
    const namespace = streams.audit?.serviceUrl == null ? "audit" : "audit-write";
    const read: redisDoor.Replaying["read"] =
      known === "audit" ? (entry) => readAuditEntry(from, entry, namespace) : readRecoveryEntry;
    const redis = await redisDoor.connectRedis(streams.redis);
    try {
      const stream = redisDoor.deadStreamOf({ stream: from, seedDeadStream: seed.deadStream }, redis.cluster);
      const accept: redisDoor.Replaying["accept"] = (messages) => mg.enqueueText(messages);
      const files = filesOf(config, mg, known);
      return await use({ redis, stream, store: mg.store, ids: createIds(mg.clock), actor, read, accept, files });
    } finally {
      await redis.close();
    }
  };
}

/** A dead letter in the same Redis is no archive of it: where nothing else is there, a directory is. */
function filesOf({ archive, seal_key }: Pick<Said, "archive" | "seal_key">, { store }: Makegood, name: string) {
  const [, directory] = /^file:(.+)$/.exec(archive) ?? [];
  if (store.traits.name !== "redis" || directory === undefined) return undefined;
  return createStreamFiles({ directory, name, sealKey: seal_key ?? undefined, random: systemRandom });
}
