/**
 * Reads untrusted JSON and collects every mistake with its path, so that its author can mend all of them at once. Looks at
 * own members only and never assigns by a name from outside: `__proto__` is one more unknown member.
 */
import type { Fault } from "../../message/fault.ts";
import { isObject } from "../../message/json.ts";
import { RULE_LIMITS } from "./rule.ts";

export class Mistakes {
  /** The fields are paths such as `condition.all[2].code.is[0]`; empty for the whole. */
  readonly list: Fault[] = [];

  add(field: string, detail: string): void {
    if (this.list.length < RULE_LIMITS.errorsMax) this.list.push({ field, detail });
  }

  get some(): boolean {
    return this.list.length > 0;
  }

  /** A plain object with no members but `known`; undefined, and said so, when it is none. */
  object(value: unknown, path: string, known: readonly string[]): Readonly<Record<string, unknown>> | undefined {
    if (!isObject(value)) {
      this.add(path, "must be an object");
      return undefined;
    }
    for (const name of Object.keys(value)) {
      if (!known.includes(name)) this.add(path, `has an unknown member ${shown(name)}; known are ${known.join(", ")}`);
    }
    const own: Record<string, unknown> = Object.create(null);
    for (const name of known) if (Object.hasOwn(value, name)) own[name] = value[name];
    return own;
  }

  /** One to `max` entries. */
  array(value: unknown, path: string, max: number): readonly unknown[] | undefined {
    if (!Array.isArray(value)) this.add(path, "must be a list");
    else if (value.length === 0) this.add(path, "must not be empty");
    else if (value.length > max) this.add(path, `has ${value.length} entries, at most ${max}`);
    else return value;
    return undefined;
  }

  text(value: unknown, path: string, charsMax: number): string | undefined {
    if (typeof value !== "string") this.add(path, "must be a text");
    else if (value.trim() === "") this.add(path, "must not be empty");
    else if (value.length > charsMax) this.add(path, `has ${value.length} characters, at most ${charsMax}`);
    else if (/\p{Cc}/u.test(value)) this.add(path, "must not contain control characters");
    else return value;
    return undefined;
  }

  texts(value: unknown, path: string): readonly string[] | undefined {
    const list = this.array(value, path, RULE_LIMITS.valuesMax);
    const read = list?.map((each, i) => this.text(each, `${path}[${i}]`, RULE_LIMITS.textCharsMax));
    return read?.every((each) => each !== undefined) ? (read as string[]) : undefined;
  }

  number(value: unknown, path: string, min: number, max: number, whole: boolean): number | undefined {
    const fits = typeof value === "number" && value >= min && value <= max && (!whole || Number.isInteger(value));
    if (fits) return value;
    this.add(path, `must be a ${whole ? "whole " : ""}number from ${min} to ${max}`);
    return undefined;
  }
}

/** A name from outside, short and with escapes: it may be shown on a terminal. */
export function shown(name: string): string {
  return JSON.stringify(name.length > 40 ? `${name.slice(0, 40)}…` : name);
}
