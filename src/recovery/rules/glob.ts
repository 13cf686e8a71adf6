/** Names with stars: `billing/*` is every topic of billing. A star stands for any characters, everything else for itself, the case counts. */
export function fitsGlob(glob: string, text: string): boolean {
  const [first = "", ...parts] = glob.split("*");
  const last = parts.pop();
  if (last === undefined) return glob === text;
  if (!text.startsWith(first)) return false;
  // The first place of each part is as good as any later one: nothing is ever tried again.
  let at = first.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}
