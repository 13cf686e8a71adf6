/**
 * Reads the fields of a parsed JSON object one by one and collects everything that is wrong, so that a person mends a
 * topic or a configuration once and not once for every mistake.
 */

export interface FieldFault {
  /** A path like `sink.timeout_ms`. */
  readonly field: string;
  readonly detail: string;
}

export interface Fields {
  readonly faults: FieldFault[];
  /** Own members only: nothing on a prototype is ever seen. */
  text(name: string): string | undefined;
  integer(name: string, min: number, max: number): number | undefined;
  /** Without bounds: any number. */
  number(name: string, min?: number, max?: number): number | undefined;
  boolean(name: string): boolean | undefined;
  oneOf<T extends string>(name: string, allowed: readonly T[]): T | undefined;
  /** `max` null: as many as there are. */
  list<T>(name: string, max: number | null, isOne: (value: unknown) => value is T, what: string): T[] | undefined;
  object(name: string): Fields | undefined;
  entries(): [string, unknown][];
  has(name: string): boolean;
  raw(name: string): unknown;
  fault(name: string, detail: string): void;
  /** Call last: names every member that nobody asked for. `silent` are allowed and ignored. */
  refuseUnknown(silent?: readonly string[]): void;
}

/** Undefined, and one fault, when `value` is not an object. */
export function readFields(value: unknown, path: string, faults: FieldFault[]): Fields | undefined {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    faults.push({ field: path === "" ? "." : path, detail: "must be an object" });
    return undefined;
  }
  const members = new Map<string, unknown>(Object.entries(value));
  const asked = new Set<string>();
  const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const fault = (name: string, detail: string): undefined => {
    faults.push({ field: at(name), detail });
    return undefined;
  };
  /** Null means the same as absent: what a GET shows as null may be sent back. */
  const get = (name: string): unknown => {
    asked.add(name);
    return members.get(name) ?? undefined;
  };
  return {
    faults,
    text(name) {
      const found = get(name);
      if (found === undefined) return undefined;
      return typeof found === "string" && found !== "" ? found : fault(name, "must be a string that is not empty");
    },
    integer(name, min, max) {
      const found = get(name);
      if (found === undefined) return undefined;
      const fits = typeof found === "number" && Number.isInteger(found) && found >= min && found <= max;
      return fits ? found : fault(name, `must be an integer from ${min} to ${max}`);
    },
    number(name, min, max) {
      const found = get(name);
      if (found === undefined) return undefined;
      const fits = typeof found === "number" && found >= (min ?? found) && found <= (max ?? found);
      return fits ? found : fault(name, min === undefined ? "must be a number" : `must be a number from ${min} to ${max}`);
    },
    boolean(name) {
      const found = get(name);
      if (found === undefined || typeof found === "boolean") return found;
      return fault(name, "must be true or false");
    },
    oneOf(name, allowed) {
      const found = get(name);
      if (found === undefined) return undefined;
      const known = allowed.find((one) => one === found);
      return known ?? fault(name, `must be one of ${allowed.join(", ")}`);
    },
    list(name, max, isOne, what) {
      const found = get(name);
      if (found === undefined) return undefined;
      const fits = Array.isArray(found) && found.length >= 1 && found.length <= (max ?? found.length) && found.every(isOne);
      return fits ? found : fault(name, max === null ? `must be a list of ${what}` : `must be a list of 1 to ${max} ${what}`);
    },
    object(name) {
      const found = get(name);
      return found === undefined ? undefined : readFields(found, at(name), faults);
    },
    entries: () => [...members],
    has: (name) => (members.get(name) ?? undefined) !== undefined,
    raw: get,
    fault,
    refuseUnknown(silent = []) {
      for (const name of members.keys()) {
        if (!asked.has(name) && !silent.includes(name)) fault(name.slice(0, 100), `unknown field${suggestion(name, asked)}`);
      }
    },
  };
}

/** ` (did you mean x?)` when one of the known names is near. */
export function suggestion(name: string, known: Iterable<string>): string {
  let best: string | null = null;
  let nearest = 3;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < nearest) {
      nearest = distance;
      best = candidate;
    }
  }
  return best === null ? "" : ` (did you mean ${best}?)`;
}

function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2 || a.length > 100) return 3;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
