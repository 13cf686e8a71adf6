/**
 * Makes a failing history shorter: fewer actions, then fewer messages in what is left, for as long as the same invariant breaks and there is
 * time. Each try is a whole history of its own, so what is found is a history that can be played again.
 */
import type { Action } from "./actions.ts";
import { type History, playHistory } from "./simulate.ts";

export interface Shrunk {
  readonly history: History;
  readonly tries: number;
}

export async function shrink(failed: History, withinMs: number, keptMs?: number): Promise<Shrunk> {
  const untilMs = performance.now() + withinMs;
  let best = failed;
  let tries = 0;
  const play = async (actions: readonly Action[]): Promise<boolean> => {
    tries++;
    const history = await playHistory({ seed: failed.seed, actions, keptMs, stepsMax: 1.2 * best.steps + 500 });
    if (history.failure?.invariant !== failed.failure?.invariant) return false;
    best = history;
    return true;
  };
  const inTime = (): boolean => performance.now() < untilMs;
  let before: number;
  do {
    before = sizeOf(best.actions);
    await fewer(() => best.actions, play, inTime);
    await smaller(() => best.actions, play, inTime);
  } while (sizeOf(best.actions) < before && inTime());
  return { history: best, tries };
}

const sizeOf = (actions: readonly Action[]): number =>
  actions.reduce((sum, action) => sum + (action.kind === "send" ? action.sent.length : 1), 0);

type Play = (actions: readonly Action[]) => Promise<boolean>;

/** Leaves out parts, large ones first, then smaller ones. What happened before a part keeps its time. */
async function fewer(actions: () => readonly Action[], play: Play, inTime: () => boolean): Promise<void> {
  for (let size = Math.ceil(actions().length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < actions().length && inTime(); ) {
      const left = without(actions(), at, size);
      if (left.length === 0 || !(await play(left))) at += size;
    }
  }
}

/** The time that passed before what is left out passes before what follows. */
function without(actions: readonly Action[], at: number, size: number): Action[] {
  const gone = actions.slice(at, at + size);
  const passedMs = gone.reduce((sum, { afterMs }) => sum + afterMs, 0);
  const rest = actions.slice(at + size);
  const [next, ...others] = rest;
  return [...actions.slice(0, at), ...(next ? [{ ...next, afterMs: next.afterMs + passedMs }, ...others] : [])];
}

/** Batches with fewer messages. */
async function smaller(actions: () => readonly Action[], play: Play, inTime: () => boolean): Promise<void> {
  for (let at = 0; at < actions().length && inTime(); at++) {
    for (;;) {
      const action = actions()[at];
      if (action?.kind !== "send" || action.sent.length < 2 || !inTime()) break;
      const half = action.sent.length >> 1;
      const halves = [action.sent.slice(0, half), action.sent.slice(half)];
      let found = false;
      for (const sent of halves) {
        found = await play(actions().map((one, i) => (i === at ? { ...action, sent } : one)));
        if (found) break;
      }
      if (!found) break;
    }
  }
}
