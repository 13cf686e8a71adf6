/**
 * A value that fits a schema, made from the schema itself: what is typical of a field is known by its name, anything else is the least that the
 * schema allows. A test holds every example against its schema.
 */
import type { z } from "zod";
import { innermost } from "./values.ts";

const UUID = "0190d5c8-6f2a-7c31-9b1e-2f4a6c8e0b1d";
const TYPICAL: Readonly<Record<string, unknown>> = {
  topic: "billing/finalize",
  payload: { invoice: "in_41" },
  key: "in_41",
  tenant_id: "acme",
  status: "pending",
  reason: "the receiver is mended",
  kind: "http",
  url: "https://billing.example/settle",
  error_type: "timeout",
  error_code: "timeout",
  raw: "connect timed out",
  from: [8],
  words: ["timed out"],
  note: "looked at it",
  version: 3,
  group_id: 7,
  candidate_id: 12,
  id: UUID,
  message_id: UUID,
  redrive_id: UUID,
  next_cursor: null,
  last_error: null,
};
/** Of which the first that fits is taken. */
const PLAIN = [null, "text", "2026-01-02T03:04:05.678Z", 0, 1, true, {}];

/** Of an object what is needed is shown, and what is typical. */
export function exampleOf(schema: z.ZodType, name = ""): unknown {
  const fits = (value: unknown): boolean => value !== undefined && schema.safeParse(value).success;
  if (fits(TYPICAL[name])) return TYPICAL[name];
  const inner = innermost(schema);
  if (inner.type === "array") return [exampleOf((inner as z.ZodArray<z.ZodType>).element, name)];
  if (inner.type === "enum") return Object.values((inner as z.ZodEnum).enum)[0];
  if (inner.type !== "object") return PLAIN.find((value) => inner.safeParse(value).success);
  const members = Object.entries((inner as z.ZodObject).shape) as [string, z.ZodType][];
  const shown = members.filter(([one, member]) => one in TYPICAL || member._zod.optin === undefined);
  return Object.fromEntries(shown.map(([one, member]) => [one, exampleOf(member, one)]));
}
