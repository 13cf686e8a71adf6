/**
 * WAIT: where it is asked for, an enqueue is accepted only when so many replicas have it, too. Too few is not a failure but an
 * unknown outcome: the primary has the message, and a repeat with the same id is one message.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Db } from "./db.ts";

export function requireReplicas(db: Db, wanted?: { readonly count: number; readonly timeoutMs: number }): () => Promise<void> {
  if (!wanted) return async () => {};
  return async () => {
    if (db.port().cluster) {
      throw new MakegoodError(
        "invalid_config",
        "`replicas` needs a single Redis: in a cluster use min-replicas-to-write on every master instead.",
      );
    }
    const reached = await db.command(
      "wait for replicas",
      db.keys.channel,
      ["WAIT", String(wanted.count), String(wanted.timeoutMs)],
      true,
    );
    if (Number(reached) >= wanted.count) return;
    throw new MakegoodError(
      "outcome_unknown",
      `${String(reached)} of ${wanted.count} replicas confirmed within ${wanted.timeoutMs} ms; repeat with the same id`,
      { reached, wanted: wanted.count },
    );
  };
}
