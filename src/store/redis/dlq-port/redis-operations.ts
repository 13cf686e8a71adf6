/**
 * What people on call do with the port on Redis: see terminal records and the quarantine, replay, resolve, count by state,
 * reconcile. Nothing here makes or ends a claim.
 */
import { READ_TERMINAL, REPLAY_TERMINAL, RESOLVE_TERMINAL } from "./claim-scripts.ts";
import type { DLQOperations, TerminalRecord } from "./dlq-store.ts";
import * as rules from "./entry.ts";
import { parseMember } from "./keys.ts";
import { createReconcile, type ReconcileParts } from "./reconcile.ts";
import { list, toQuarantined, toTerminal } from "./rows.ts";
import { GAUGES, READ_QUARANTINE } from "./scripts.ts";

type Operations = Omit<DLQOperations, "maxRetries" | "batchLimit" | "extendClaim">;

export function createOperations(parts: ReconcileParts & { readonly batchLimit: number }): Operations {
  const { keys, run, send, batchLimit } = parts;

  async function readTerminals(ids: readonly string[]): Promise<(TerminalRecord | null)[]> {
    if (ids.length === 0) return [];
    const on = ids.map((id) => keys.terminal(id));
    return list(await run(READ_TERMINAL, on, [])).map(toTerminal);
  }

  return {
    reconcile: createReconcile(parts),

    async getTerminal(id) {
      rules.checkId(id);
      return (await readTerminals([id]))[0] ?? null;
    },
    async listTerminal(limit = batchLimit, offset = 0) {
      const { from, count } = rules.pageOf(limit, offset);
      const ids = await send(keys.terminals, ["ZRANGE", keys.terminals, String(from), String(from + count - 1)]);
      return (await readTerminals(list(ids).map(String))).filter((record) => record !== null);
    },
    async replayTerminal(id) {
      rules.checkId(id);
      const on = [keys.entry(id), keys.schedule, keys.created, keys.terminal(id), keys.terminals];
      return Number(await run(REPLAY_TERMINAL, on, [id])) === 1;
    },
    async resolveTerminal(id, { as, actor, reason }) {
      rules.checkId(id);
      rules.checkReason(reason);
      const args = [id, as, actor, reason, String(rules.DLQ_LIMITS.closedKeptMs)];
      return Number(await run(RESOLVE_TERMINAL, [keys.terminal(id), keys.terminals], args)) === 1;
    },
    async listQuarantine(limit = batchLimit, offset = 0) {
      const { from, count } = rules.pageOf(limit, offset);
      const args = ["ZRANGE", keys.quarantine, String(from), String(from + count - 1), "WITHSCORES"];
      const pairs = list(await send(keys.quarantine, args)).flat();
      const members = pairs.filter((_, i) => i % 2 === 0).map((member) => parseMember(String(member)));
      if (members.length === 0) return [];
      const on = members.map(({ nonce, id }) => keys.quarantined(nonce, id));
      return toQuarantined(pairs, list(await run(READ_QUARANTINE, on, [])));
    },
    async gauges() {
      const reply = await run(GAUGES, [keys.schedule, keys.claimed, keys.terminals, keys.quarantine], []);
      const [all = 0, due = 0, claimed = 0, terminal = 0, quarantined = 0] = list(reply).map(Number);
      return { due, waiting: Math.max(0, all - due - claimed), claimed, terminal, quarantined };
    },
  };
}
