/** From which confidence on something is suggested, and executed without a person (candidates/auto-execution.ts). */

/** `RECOVERY_MIN_CONFIDENCE` sets the first. */
export const CONFIDENCE_GATES = { select: 0.3, autoExecute: 0.8 } as const;

export function isSelectable(confidence: number, min: number = CONFIDENCE_GATES.select): boolean {
  return confidence >= min;
}
