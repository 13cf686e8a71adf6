/**
 * WAIT: where it is asked for, an enqueue is accepted only when so many replicas have it, too. Too few is not a failure but an
 * unknown outcome: the primary has the message, and a repeat with the same id is one message.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Db } from "./db.ts";
import type { RedisPort } from "./port.ts";

export interface WantedReplicas {
  readonly count: number;
  readonly timeoutMs: number;
}

/** WAIT counts the replicas of one connection; the clients of a cluster have many, and do not say which one a WAIT would take. */
export function refuseInCluster({ cluster }: RedisPort, wanted: WantedReplicas | undefined): void {
  if (!wanted || !cluster) return;
  throw new MakegoodError(
    "invalid_config",
    "`replicas` needs a single Redis: in a cluster use min-replicas-to-write on every master instead.",
    { replicas: wanted.count },
  );
}

/** Null: no replicas are asked for. */
export function requireReplicas(db: Db, wanted?: WantedReplicas): (() => Promise<void>) | null {
  if (!wanted) return null;
  const args = ["WAIT", String(wanted.count), String(wanted.timeoutMs)];
  return async () => {
    const reached = await db.command("wait for replicas", db.keys.channel, args, true);
    if (Number(reached) >= wanted.count) return;
    throw new MakegoodError(
      "outcome_unknown",
      `${String(reached)} of ${wanted.count} replicas confirmed within ${wanted.timeoutMs} ms; repeat with the same id`,
      { reached, wanted: wanted.count },
    );
  };
}
