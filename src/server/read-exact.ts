/**
 * A body of which one member is kept as the exact text that it is (I8): the rest is checked by the schema, a name that comes twice is a
 * fault, and nothing is looked at twice.
 */
import type { z } from "zod";
import { check, FAULTS_NAMED_MAX } from "../contract/faults.ts";
import type { ErrorCode } from "../message/errors.ts";
import { type Cursor, cursorOn, eachMember, expectEnd, takeValue } from "../message/json-scanner.ts";
import { type Own, ownOf } from "./json/wire.ts";
import { refusal, together } from "./read-request.ts";

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
): { readonly value: Own<z.output<S>>; readonly text: string } {
  /** C1: each once, and no more than are shown. */
  const twice = new Set<string>();
  const members = new Map<string, unknown>();
  let text = "";
  const cursor = cursorOn(body, code);
  const isObject = eachMember(cursor, (member) => {
    if (members.has(member) && twice.size < FAULTS_NAMED_MAX) twice.add(member);
    const taken = member === name ? take(cursor) : null;
    if (taken) text = taken.text;
    members.set(member, taken ? taken.value : JSON.parse(takeValue(cursor)));
  });
  if (!isObject) takeValue(cursor);
  expectEnd(cursor);
  const checked = check(schema, isObject ? Object.fromEntries(members) : null);
  if (checked.ok && twice.size === 0) return { value: ownOf(schema, checked.value), text };
  const repeated = [...twice].map((one) => ({ field: one.slice(0, 100), detail: "is given twice" }));
  throw refusal(code, together(repeated, checked));
}
