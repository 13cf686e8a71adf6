/** What is wrong with an input: all faults at once, twenty of them named, so that no input makes an answer large. */
import type { z } from "zod";
import type { Fault } from "../message/fault.ts";

export type { Fault };

export type Faults = { readonly named: readonly Fault[]; readonly more: number };
export type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly faults: Faults };

export const FAULTS_NAMED_MAX = 20;
const FIELD_CHARS_MAX = 100;
const BETWEEN = "\n";

export function check<S extends z.ZodType>(schema: S, value: unknown): Checked<z.output<S>> {
  const result = schema.safeParse(value);
  return result.success ? { ok: true, value: result.data } : { ok: false, faults: faultsOf(result.error.issues) };
}

export function namedOf(faults: Iterable<Fault>): Faults {
  const all = [...faults];
  return { named: all.slice(0, FAULTS_NAMED_MAX), more: Math.max(0, all.length - FAULTS_NAMED_MAX) };
}

/** Of several about one field the first. */
function faultsOf(issues: readonly z.core.$ZodIssue[]): Faults {
  const first = new Map<string, Fault>();
  let unnamed = 0;
  const add = (path: readonly PropertyKey[], detail: string): void => {
    const field = fieldOf(path);
    if (!first.has(field)) first.set(field, { field, detail });
  };
  for (const issue of issues) {
    if (issue.code !== "unrecognized_keys") add(issue.path, issue.message);
    else {
      for (const [i, words] of issue.message.split(BETWEEN).entries()) add([...issue.path, issue.keys[i] ?? ""], words);
      unnamed += Math.max(0, issue.keys.length - FAULTS_NAMED_MAX);
    }
  }
  const { named, more } = namedOf(first.values());
  return { named, more: more + unnamed };
}

function fieldOf(path: readonly PropertyKey[]): string {
  return path.length === 0 ? "." : path.map((part) => String(part).slice(0, FIELD_CHARS_MAX)).join(".");
}

/** What is said of fields that an object does not have: the first twenty of them, each with the name that was perhaps meant. */
export function unknownFields(names: readonly string[], known: readonly string[]): string {
  return names
    .slice(0, FAULTS_NAMED_MAX)
    .map((name) => `unknown field${suggestion(name, known)}`)
    .join(BETWEEN);
}

export function faultsText({ named, more }: Faults): string {
  const list = named.map(({ field, detail }) => (field === "." ? detail : `${field}: ${detail}`)).join("; ");
  return more === 0 ? list : `${list}; and ${more} more`;
}

export function suggestion(name: string, known: Iterable<string>): string {
  const all = Array.from(known, (one) => ({ one, distance: editDistance(name.toLowerCase(), one.toLowerCase()) }));
  const [best] = all.filter(({ distance }) => distance < 3).sort((a, b) => a.distance - b.distance);
  return best === undefined ? "" : ` (did you mean ${best.one}?)`;
}

/** How many letters differ, counted to `most`: beyond it nobody meant the other word, and no input makes it slow. */
function editDistance(a: string, b: string, most = 3): number {
  if (a === b || most === 0) return 0;
  if (Math.abs(a.length - b.length) >= most || a.length > FIELD_CHARS_MAX) return most;
  const [x, y] = [a.slice(1), b.slice(1)];
  if (a[0] === b[0]) return editDistance(x, y, most);
  return 1 + Math.min(editDistance(x, y, most - 1), editDistance(x, b, most - 1), editDistance(a, y, most - 1));
}
