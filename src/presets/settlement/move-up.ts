/**
 * Moves what was kept below while the store was away into the store, by put-if-absent: what the store knows already is
 * left as it is, attempts and terminal records included (CON-8). An entry leaves memory only after the store has it.
 */
import { errorText } from "../../message/errors.ts";
import type { DLQOperations, DLQStore } from "../../store/redis/dlq-port/dlq-store.ts";
import type { Lines } from "./lines.ts";

export interface MoveUpDeps {
  readonly memory: DLQStore & DLQOperations;
  /** The reservations that wait in memory; what has moved is taken out. */
  readonly below: Set<string>;
  readonly store: DLQStore;
  readonly lines: Lines;
}

const MOVED = { as: "resolved", actor: "settlement", reason: "moved to the store" } as const;

/** Stops at the first failure: a store that is away is away for all of them. */
export async function moveUp(deps: MoveUpDeps): Promise<void> {
  let moved = 0;
  try {
    for (const id of deps.below) if (await moveOne(id, deps)) moved++;
  } catch (error) {
    deps.lines.storeFailed("move up", errorText(error));
  }
  if (moved > 0) deps.lines.promoted(moved, deps.store.kind);
}

async function moveOne(id: string, { memory, below, store, lines }: MoveUpDeps): Promise<boolean> {
  const entry = await memory.get(id);
  if (entry !== null) {
    // A conflict is in the store's quarantine now, with an alarm: there it has a place that lasts, too.
    if ((await store.put(entry)) === "conflict") lines.conflict(entry, store.kind);
    return (await memory.delete(id)) && below.delete(id);
  }
  const record = await memory.getTerminal(id);
  below.delete(id);
  if (record?.resolution !== "open") return false;
  const { terminal_reason, terminal_at, resolution, resolved_by, resolved_reason, ...fields } = record;
  try {
    await store.put(fields, { terminal: terminal_reason });
  } catch (error) {
    below.add(id);
    throw error;
  }
  return memory.resolveTerminal(id, MOVED);
}
