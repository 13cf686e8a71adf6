/**
 * Max-min fairness, pure: hands out an amount so that those who hold least get most, as water finds its level. Nobody gets
 * more than his `max`, and everything is handed out unless all are full.
 */

export interface Holder {
  /** What it holds already. */
  readonly held: number;
  /** The most it may be given now. */
  readonly max: number;
}

/** What each is given, in their order; where the last units do not divide, earlier ones get them. */
export function waterFill(holders: readonly Holder[], amount: number): number[] {
  const first = holders[0];
  if (first && holders.length === 1) return [Math.max(0, Math.min(first.max, amount))];
  // The highest whole level that does not take more than there is.
  let low = 0;
  let high = amount + 1;
  for (const { held } of holders) high = Math.max(high, held + amount + 1);
  while (high - low > 1) {
    const level = (low + high) >>> 1;
    if (taken(holders, level) <= amount) low = level;
    else high = level;
  }
  let left = amount - taken(holders, low);
  return holders.map((holder) => {
    const given = upTo(holder, low);
    // One more for whom the next level would have given it.
    const extra = left > 0 && given < holder.max && holder.held <= low ? 1 : 0;
    left -= extra;
    return given + extra;
  });
}

function taken(holders: readonly Holder[], level: number): number {
  let sum = 0;
  for (const holder of holders) sum += upTo(holder, level);
  return sum;
}

function upTo({ held, max }: Holder, level: number): number {
  return Math.max(0, Math.min(max, level - held));
}
