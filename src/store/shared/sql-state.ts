/**
 * The state that PostgreSQL gives an error, found where drivers and ORMs put it.
 */

/** Five characters, or another code that the driver gave; empty: none. */
export function sqlState(thrown: unknown): string {
  const code = (thrown as { readonly code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/** Whether it has such a state, also inside what an ORM makes of its driver's error. */
export function hasSqlState(thrown: unknown, state: RegExp, depth = 0): boolean {
  if (typeof thrown !== "object" || thrown === null || depth > 4) return false;
  if (state.test(sqlState(thrown))) return true;
  const { cause, driverError, meta, driverAdapterError, originalCode } = thrown as Record<string, unknown>;
  if (typeof originalCode === "string" && state.test(originalCode)) return true;
  return [cause, driverError, meta, driverAdapterError].some((inner) => hasSqlState(inner, state, depth + 1));
}

/** A conflict that only the owner of the transaction can try again; P2034 is Prisma's own name for both. */
export const isLostTransaction = (thrown: unknown): boolean => hasSqlState(thrown, /^(40001|40P01|P2034)$/);
