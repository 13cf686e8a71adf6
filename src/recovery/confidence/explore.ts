/**
 * Which action an automatic run tries when more should be learned than the suggestion would teach: Thompson sampling, among actions that
 * the catalogue calls safe and automated. How many runs may go elsewhere is the caller's budget. What is suggested to people never
 * explores.
 */
import { HEALS } from "./priors.ts";
import type { Ranked } from "./rank.ts";

/** The action that comes out best when each is drawn by what is believed of it. `next`: a number in [0, 1), each time another. */
export function actionToTry(
  ranked: readonly Pick<Ranked, "action" | "belief">[],
  suggested: string,
  mayTry: (action: string) => boolean,
  next: () => number,
): string {
  let best = { action: suggested, drawn: -1 };
  for (const { action, belief } of ranked) {
    if (action !== suggested && !mayTry(action)) continue;
    const { successes, failures } = next() < belief.cure ? HEALS.cure : HEALS.other;
    const [x, y] = [gamma(successes + belief.successes, next), gamma(failures + belief.failures, next)];
    if (x / (x + y) > best.drawn) best = { action, drawn: x / (x + y) };
  }
  return best.action;
}

/** A draw from the gamma distribution of a shape of 1 or more, by acceptance of a cubed normal one. 1 - next() is never 0. */
function gamma(shape: number, next: () => number): number {
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const normal = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
    const v = (1 + c * normal) ** 3;
    if (v > 0 && Math.log(1 - next()) < normal ** 2 / 2 + d - d * v + d * Math.log(v)) return d * v;
  }
}
