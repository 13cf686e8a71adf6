/**
 * Which of two versions of a program came first: by the rules of semantic versioning where both follow them, else by dotted numbers, else it
 * is known only that equal ones are equal. A failure brings a resolved group back unless its version is known to be an earlier one.
 */

const SEMVER = /^v?(\d{1,15})\.(\d{1,15})\.(\d{1,15})(?:-([0-9a-z.-]+))?(?:\+[0-9a-z.-]+)?$/i;
const DOTTED = /^v?\d{1,15}(?:\.\d{1,15})*$/i;

/** Below 0: `a` came before `b`; null: it cannot be told. */
export function versionOrder(a: string, b: string): number | null {
  const [one, other] = [SEMVER.exec(a), SEMVER.exec(b)];
  if (one && other) return ordered(numbersOf(one.slice(1, 4)), numbersOf(other.slice(1, 4))) || prereleaseOrder(one[4], other[4]);
  if (DOTTED.test(a) && DOTTED.test(b)) return ordered(numbersOf(a.split(".")), numbersOf(b.split(".")));
  return a === b ? 0 : null;
}

/** Whether a failure of this version shows that what was resolved in another is there again. Without a version nobody knows: it does. */
export function bringsBack(version: string | null | undefined, resolvedIn: string | null): boolean {
  if (!version || !resolvedIn) return true;
  return (versionOrder(version, resolvedIn) ?? 0) >= 0;
}

const numbersOf = (parts: readonly string[]): number[] => parts.map((part) => Number(part.replace(/^v/i, "")));

function ordered(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** What is to be released comes before it; numbers before words, fewer parts before more. */
function prereleaseOrder(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  const [one, other] = [a.split("."), b.split(".")];
  for (const [i, part] of one.entries()) {
    const beside = other[i];
    if (beside === undefined) return 1;
    if (part === beside) continue;
    const [isNumber, besideIs] = [/^\d+$/.test(part), /^\d+$/.test(beside)];
    if (isNumber && besideIs) return Number(part) - Number(beside);
    return isNumber === besideIs ? (part < beside ? -1 : 1) : isNumber ? -1 : 1;
  }
  return one.length - other.length;
}
