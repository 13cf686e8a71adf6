/**
 * Looking at what became of sent messages, and learning from it in the same write. A copy that was delivered resolves its original, if
 * that still stands as it was frozen.
 */
import type { Learned } from "../../recovery.ts";
import { type Fate, fateOf, type RedriveCounts } from "../../redrive.ts";
import type { At } from "../../store.ts";
import { intervene } from "../intervene.ts";
import { nowMs } from "../state.ts";
import { learn } from "./outcomes.ts";
import { atomically, type ItemRow, itemsOf, type Memory, type RedriveRow, setItem } from "./records.ts";
import { redriveView, underToken } from "./redrives.ts";

interface How {
  readonly limit: number;
  readonly halfLifeMs: number;
  readonly quietMs: number;
}

export function look(memory: Memory, id: string, token: string, how: How, at?: At): RedriveCounts | null {
  return atomically(memory, () => {
    const redrive = underToken(memory, id, token);
    if (!redrive) return null;
    const now = nowMs(memory.kernel, at);
    const learned = new Map<number, Learned>();
    const looked = ({ lookedMs }: ItemRow): number => lookedMs ?? Number.NEGATIVE_INFINITY;
    const sent = itemsOf(memory, id)
      .filter(({ state }) => state === "sent")
      .sort((a, b) => (looked(a) === looked(b) ? a.n - b.n : looked(a) - looked(b)))
      .slice(0, how.limit);
    for (const item of sent) {
      const fate = fateOfItem(memory, redrive, item, how.quietMs, now);
      if (!fate) {
        setItem(memory, id, { ...item, lookedMs: now });
        continue;
      }
      const { state, reason } = fate;
      setItem(memory, id, { ...item, state, reason, endedAt: new Date(now), lookedMs: now });
      if (fate.learned) count(learned, redrive, item, state);
      if (redrive.mode === "copy" && state === "healed") resolveOriginal(memory, redrive, item, now);
    }
    learn(memory, [...learned.values()], how.halfLifeMs, now);
    return redriveView(memory, redrive).counts;
  });
}

function fateOfItem(memory: Memory, { mode }: RedriveRow, item: ItemRow, quietMs: number, now: number): Fate | null {
  const seen = memory.kernel.messages.get(item.carrierId ?? item.messageId) ?? null;
  const quiet = now - (item.sentAt?.getTime() ?? now) >= quietMs;
  return fateOf(mode, item.generation, seen, quiet);
}

function count(learned: Map<number, Learned>, { action }: RedriveRow, { groupId }: ItemRow, state: Fate["state"]): void {
  if (action === null || groupId === null) return;
  const { healed, failed } = learned.get(groupId) ?? { healed: 0, failed: 0 };
  const more = state === "healed" ? { healed: healed + 1, failed } : { healed, failed: failed + 1 };
  learned.set(groupId, { groupId, action, ...more });
}

function resolveOriginal(memory: Memory, { actor, reason }: RedriveRow, { messageId, revision }: ItemRow, now: number): void {
  intervene(memory.kernel, { id: messageId, action: "resolve", actor, reason, revision, now: new Date(now) });
}
