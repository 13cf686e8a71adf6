/**
 * From which confidence on something is done. To be suggested and to be executed without a person are two questions: the second
 * is asked only of actions that are automated and safe (candidates/auto-execution.ts), and is off by default.
 */

/** `RECOVERY_MIN_CONFIDENCE` sets the first. */
export const CONFIDENCE_GATES = { select: 0.3, autoExecute: 0.8 } as const;

export function isSelectable(confidence: number, min: number = CONFIDENCE_GATES.select): boolean {
  return confidence >= min;
}
