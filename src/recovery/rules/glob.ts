/**
 * Names with stars: `billing/*` is every topic of billing. A star stands for any characters, everything else for itself, the case
 * counts. Linear but for the number of stars, and it never runs back further than the last star.
 */
export function fitsGlob(glob: string, text: string): boolean {
  let at = 0;
  let from = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    if (glob[from] === "*") {
      star = from++;
      resume = at;
    } else if (from < glob.length && glob[from] === text[at]) {
      from++;
      at++;
    } else if (star >= 0) {
      from = star + 1;
      at = ++resume;
    } else return false;
  }
  while (glob[from] === "*") from++;
  return from === glob.length;
}
