/**
 * JSON that others wrote, read without trust: what is no object, or no JSON at all, is a value to check and never a throw. And
 * JSON of our own whose members have other names than the types have today.
 */

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object that a text holds; null: it holds none. */
export function readObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** The same members in the same order; those that `names` has are called as it says. */
export function withNames(object: object, names: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [Object.hasOwn(names, name) ? names[name] : name, value]),
  );
}
