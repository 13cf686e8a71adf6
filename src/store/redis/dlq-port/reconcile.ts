/**
 * The reconciliation of the port's indexes with its payloads, in both directions (DF-32). It walks with cursors, a bounded
 * page at a time, and every page is judged and mended by one script; running it twice or in two places does no harm.
 */
import type { Script } from "../lua.ts";
import type { RedisNode } from "../wire.ts";
import type { AlarmKind } from "./dlq-store.ts";
import type { DLQKeys } from "./keys.ts";
import { list } from "./rows.ts";
import { RECONCILE } from "./scripts.ts";

const PAGE = "500";

export interface ReconcileParts {
  readonly keys: DLQKeys;
  readonly indexes: readonly string[];
  readonly run: (script: Script, keys: readonly string[], args: readonly string[]) => Promise<unknown>;
  readonly send: (key: string, args: readonly string[]) => Promise<unknown>;
  readonly nodes: () => Promise<readonly RedisNode[]>;
  readonly hex: (bytes: number) => string;
  readonly alarm: (kind: AlarmKind, id: string) => void;
}

export function createReconcile({ keys, indexes, run, send, nodes, hex, alarm }: ReconcileParts) {
  const pattern = `${keys.entryPrefix.replace(/[\\*?[\]]/g, "\\$&")}*`;

  async function* pages(): AsyncGenerator<string[]> {
    for (const index of [keys.schedule, keys.created]) {
      let cursor = "0";
      do {
        const [next, flat] = list(await send(index, ["ZSCAN", index, cursor, "COUNT", PAGE]));
        cursor = String(next);
        yield list(flat)
          .flat()
          .filter((_, i) => i % 2 === 0)
          .map(String);
      } while (cursor !== "0");
    }
    // SCAN names no key, so it cannot be sent to the one node that holds them: every master is asked.
    for (const node of (await nodes()).filter(({ role }) => role === "master")) {
      let cursor = "0";
      do {
        const [next, found] = list(await node.send(["SCAN", cursor, "MATCH", pattern, "COUNT", PAGE]));
        cursor = String(next);
        yield list(found).map((key) => String(key).slice(keys.entryPrefix.length));
      } while (cursor !== "0");
    }
  }

  return async function reconcile(): Promise<{ checked: number; mended: number; quarantined: number }> {
    const seen = new Set<string>();
    let mended = 0;
    let quarantined = 0;
    for await (const page of pages()) {
      const ids = [...new Set(page)];
      if (ids.length === 0) continue;
      for (const id of ids) seen.add(id);
      const nonce = hex(8);
      const on = [...indexes, ...ids.flatMap((id) => [keys.entry(id), keys.quarantined(nonce, id)])];
      for (const found of list(await run(RECONCILE, on, [nonce, ...ids])).map(list)) {
        const kind = found[1] as AlarmKind;
        alarm(kind, String(found[0]));
        if (kind === "unscheduled") mended++;
        else quarantined++;
      }
    }
    return { checked: seen.size, mended, quarantined };
  };
}
