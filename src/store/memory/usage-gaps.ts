/**
 * Compares quota rows with the turns they come from, in memory: what `verify` of the usage seam means, written out.
 */
import type { QuotaGap, QuotaUsage, Turn } from "../usage.ts";

type Row = QuotaUsage & { readonly tenantId: string; readonly userId: string | null };

export function quotaGaps(turns: readonly Turn[], rows: readonly Row[]): QuotaGap[] {
  return rows.flatMap((row) => {
    const { tenantId, userId, period, bucket } = row;
    const mine = turns.filter(
      (turn) =>
        turn.tenantId === tenantId &&
        turn.userId === userId &&
        turn.period === period &&
        turn.buckets.some(({ name }) => name === bucket),
    );
    const reserved = mine.reduce((sum, turn) => sum + (turn.state === "running" ? turn.reservedCredits : 0n), 0n);
    const spent = mine.reduce((sum, turn) => sum + (turn.settlement?.credits ?? 0n), 0n);
    const gap = (what: QuotaGap["what"], rowCredits: bigint, turnCredits: bigint): QuotaGap[] =>
      rowCredits === turnCredits ? [] : [{ tenantId, userId, period, bucket, what, rowCredits, turnCredits }];
    return [...gap("reserved", row.reservedCredits, reserved), ...gap("spent", row.spentCredits, spent)];
  });
}
