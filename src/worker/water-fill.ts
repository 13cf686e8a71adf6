/**
 * Max-min fairness, pure: hands out an amount so that those who hold least get most, as water finds its level. Nobody gets
 * more than his `max`, and everything is handed out unless all are full.
 */

export interface Vessel {
  /** What it holds already. */
  readonly held: number;
  /** The most it may be given now. */
  readonly max: number;
}

/** What each is given, in their order; where the last units do not divide, earlier ones get them. */
export function waterFill(vessels: readonly Vessel[], amount: number): number[] {
  const first = vessels[0];
  if (first && vessels.length === 1) return [Math.max(0, Math.min(first.max, amount))];
  // The highest whole level that does not take more than there is.
  let low = 0;
  let high = amount + 1;
  for (const { held } of vessels) high = Math.max(high, held + amount + 1);
  while (high - low > 1) {
    const level = (low + high) >>> 1;
    if (taken(vessels, level) <= amount) low = level;
    else high = level;
  }
  let left = amount - taken(vessels, low);
  return vessels.map((vessel) => {
    const given = upTo(vessel, low);
    // One more for whom the next level would have given it.
    const extra = left > 0 && given < vessel.max && vessel.held <= low ? 1 : 0;
    left -= extra;
    return given + extra;
  });
}

function taken(vessels: readonly Vessel[], level: number): number {
  let sum = 0;
  for (const vessel of vessels) sum += upTo(vessel, level);
  return sum;
}

function upTo({ held, max }: Vessel, level: number): number {
  return Math.max(0, Math.min(max, level - held));
}
