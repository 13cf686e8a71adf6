/**
 * A body of which one member is kept as the exact text that it is (I8): the rest is checked by the schema, a name that comes twice is a
 * fault, and nothing is looked at twice.
 */
import type { z } from "zod";
import { check, type Fault, namedOf } from "../contract/faults.ts";
import type { ErrorCode } from "../message/errors.ts";
import { type Cursor, cursorOn, eachMember, expectEnd, takeValue } from "./payload-scanner.ts";
import { Refusal } from "./problem.ts";
import { refusal } from "./read-request.ts";

export interface Exact<T> {
  readonly value: T;
  readonly text: string;
}

interface Member {
  readonly text: string;
  /** What the schema sees in its place. */
  readonly value: unknown;
}

/** `take` reads the member; it stands for itself as `true` where the schema does not care. */
const plainly = (cursor: Cursor): Member => ({ text: takeValue(cursor), value: true });

export function readExact<S extends z.ZodType>(
  schema: S,
  body: string,
  name: string,
  code: ErrorCode,
  take: (cursor: Cursor) => Member = plainly,
): Exact<z.output<S>> {
  const faults: Fault[] = [];
  const members = new Map<string, unknown>();
  let text = "";
  const cursor = cursorOn(body, code);
  const isObject = eachMember(cursor, (member) => {
    if (members.has(member)) faults.push({ field: member.slice(0, 100), detail: "is given twice" });
    if (member !== name) {
      members.set(member, JSON.parse(takeValue(cursor)));
      return;
    }
    const taken = take(cursor);
    members.set(name, taken.value);
    text = taken.text;
  });
  if (!isObject) takeValue(cursor);
  expectEnd(cursor);
  const checked = check(schema, isObject ? Object.fromEntries(members) : null);
  if (checked.ok && faults.length === 0) return { value: checked.value, text };
  const others = checked.ok ? { named: [], more: 0 } : checked.faults;
  const all = namedOf([...faults, ...others.named]);
  throw new Refusal(refusal(code, { named: all.named, more: all.more + others.more }));
}
