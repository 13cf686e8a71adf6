/**
 * Looking at what became of sent messages, and learning from it in the same write. A copy that was delivered resolves its original, if
 * that still stands as it was frozen.
 */
import type { Learned } from "../../recovery-numbers.ts";
import { type Ending, endingOf, type RedriveCounts } from "../../redrive.ts";
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
    const last = redrive.mode === "watch" ? lastSentOf(memory) : null;
    const looked = ({ lookedMs }: ItemRow): number => lookedMs ?? Number.NEGATIVE_INFINITY;
    const sent = itemsOf(memory, id)
      .filter(({ state }) => state === "sent")
      .sort((a, b) => (looked(a) === looked(b) ? a.n - b.n : looked(a) - looked(b)))
      .slice(0, how.limit);
    for (const item of sent) {
      const taken = last !== null && last.get(item.messageId)?.id !== id;
      const seen = memory.kernel.messages.get(item.carrierId ?? item.messageId) ?? null;
      const quiet = now - (item.sentAt?.getTime() ?? now) >= how.quietMs;
      const ending = endingOf(redrive.mode, item.generation, seen, quiet, taken);
      if (!ending) {
        setItem(memory, id, { ...item, lookedMs: now });
        continue;
      }
      const { state, reason } = ending;
      setItem(memory, id, { ...item, state, reason, endedAt: new Date(now), lookedMs: now });
      if (ending.learned) count(learned, redrive, item, state);
      if (redrive.mode === "copy" && state === "healed") resolveOriginal(memory, redrive, item, now);
    }
    learn(memory, [...learned.values()], how.halfLifeMs, now);
    return redriveView(memory, redrive).counts;
  });
}

interface LastSent {
  readonly id: string;
  readonly ms: number;
}

/** Each message → the redrive that sent it last; of two at one moment the one with the greater id. */
function lastSentOf(memory: Memory): Map<string, LastSent> {
  const last = new Map<string, LastSent>();
  for (const [id, items] of memory.items) {
    for (const { messageId, sentAt } of items.values()) {
      const known = last.get(messageId);
      const ms = sentAt?.getTime();
      if (ms === undefined || (known && (known.ms > ms || (known.ms === ms && known.id > id)))) continue;
      last.set(messageId, { id, ms });
    }
  }
  return last;
}

/** Copies that died: whether one was delivered after all, and whether its original still waits for that. */
export function lookAgain(memory: Memory, limit: number, at?: At): number {
  return atomically(memory, () => {
    const now = nowMs(memory.kernel, at);
    const died = [...memory.items].flatMap(([id, items]) =>
      [...items.values()].flatMap((item) =>
        item.state === "failed" && item.carrierId !== null && item.lookedMs !== null ? [{ id, item, ms: item.lookedMs }] : [],
      ),
    );
    const looked = died.sort((a, b) => a.ms - b.ms).slice(0, limit);
    for (const { id, item } of looked) {
      const original = memory.kernel.messages.get(item.messageId);
      const copy = memory.kernel.messages.get(item.carrierId ?? "");
      const waits = original?.status === "dead" && original.resolution === "open" && original.revision === item.revision;
      const delivered = waits && copy?.status === "delivered";
      setItem(memory, id, { ...item, lookedMs: waits && copy && !delivered ? now : null });
      if (delivered) resolveOriginal(memory, memory.redrives.get(id) as RedriveRow, item, now);
    }
    return looked.length;
  });
}

function count(learned: Map<number, Learned>, { action }: RedriveRow, { groupId }: ItemRow, state: Ending["state"]): void {
  if (action === null || groupId === null) return;
  const { healed, failed } = learned.get(groupId) ?? { healed: 0, failed: 0 };
  const more = state === "healed" ? { healed: healed + 1, failed } : { healed, failed: failed + 1 };
  learned.set(groupId, { groupId, action, ...more });
}

function resolveOriginal(memory: Memory, { actor, reason }: RedriveRow, { messageId, revision }: ItemRow, now: number): void {
  intervene(memory.kernel, { id: messageId, action: "resolve", actor, reason, revision, now: new Date(now) });
}
