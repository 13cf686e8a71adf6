/** Which of two versions of a program came first, and whether a failure of one brings back what was resolved in the other. */
const SEMVER = /^v?(\d{1,15}\.\d{1,15}\.\d{1,15})(?:-([0-9a-z.-]+))?(?:\+[0-9a-z.-]+)?$/i;
const DOTTED = /^v?(\d{1,15}(?:\.\d{1,15})*)$/i;

/** By semantic versioning where both follow it, else by dotted numbers. Below 0: `a` came before `b`; null: it cannot be told. */
export function versionOrder(a: string, b: string): number | null {
  for (const form of [SEMVER, DOTTED]) {
    const [one, other] = [form.exec(a), form.exec(b)];
    if (one && other) return numbersOrder(one[1] as string, other[1] as string) || prereleaseOrder(one[2], other[2]);
  }
  return a === b ? 0 : null;
}

/** Unless it is known to be of an earlier version. */
export function bringsBack(version: string | null | undefined, resolvedIn: string | null): boolean {
  if (!version || !resolvedIn) return true;
  return (versionOrder(version, resolvedIn) ?? 0) >= 0;
}

function numbersOrder(a: string, b: string): number {
  const [one, other] = [a.split("."), b.split(".")];
  const differences = (one.length > other.length ? one : other).map((_, i) => Number(one[i] ?? 0) - Number(other[i] ?? 0));
  return differences.find((difference) => difference !== 0) ?? 0;
}

/** What is to be released comes before it; numbers before words, fewer parts before more. */
function prereleaseOrder(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  const [one, other] = [a.split("."), b.split(".")];
  const at = one.findIndex((part, i) => part !== other[i]);
  const [part, beside] = [one[at], other[at]];
  if (part === undefined || beside === undefined) return one.length - other.length;
  const [isNumber, besideIs] = [/^\d+$/.test(part), /^\d+$/.test(beside)];
  if (isNumber && besideIs) return Number(part) - Number(beside);
  return isNumber === besideIs ? (part < beside ? -1 : 1) : isNumber ? -1 : 1;
}
