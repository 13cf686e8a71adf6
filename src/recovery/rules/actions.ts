/**
 * The codes of the actions that are shipped, with the priorities of the seeds' catalogue. What an action does, its risk and who
 * must approve it is the action's own business; rules only need to know which codes exist.
 */

const SHIPPED: readonly (readonly [code: string, priority: number])[] = [
  ["retry_exponential", 80],
  ["fallback_model", 70],
  ["circuit_breaker", 60],
  ["notify_ops", 50],
  ["rollback_state", 40],
  ["manual_intervention", 30],
  ["skip_task", 20],
];

/** Code → priority. Between two actions about which nothing is known, the higher priority comes first. */
export type ActionPriorities = ReadonlyMap<string, number>;

export const SHIPPED_ACTIONS: ActionPriorities = new Map(SHIPPED);

/** The codes of a catalogue in their order: priority from high to low, then code. */
export function actionOrder(actions: ActionPriorities): string[] {
  return [...actions].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1)).map(([code]) => code);
}
