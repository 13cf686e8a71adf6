/**
 * A value that fits a JSON schema of the document, made from the schema itself: what is typical of a field is known by its name, anything else is
 * the least that the schema allows. A test holds every example against its schema.
 */
type Json = Readonly<Record<string, unknown>>;

const UUID = "0190d5c8-6f2a-7c31-9b1e-2f4a6c8e0b1d";
const TYPICAL: Json = {
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
const AT = "2026-01-02T03:04:05.678Z";

/** Of an object what is needed is shown, and what is typical. */
export function exampleOf(schema: Json, components: ReadonlyMap<string, Json>, name = ""): unknown {
  const typical = TYPICAL[name];
  if (typical !== undefined && takes(schema, typical)) return typical;
  const { $ref, anyOf, oneOf, allOf, properties, items, required = [] } = schema as Record<string, never>;
  const other = ((anyOf ?? oneOf ?? allOf) as Json[] | undefined)?.[0];
  if ($ref !== undefined) return exampleOf(components.get(String($ref).split("/").at(-1) ?? "") ?? {}, components, name);
  if (other !== undefined) return exampleOf(other, components, name);
  if (properties !== undefined) {
    const members = Object.entries(properties as Record<string, Json>);
    const shown = members.filter(([one]) => one in TYPICAL || (required as string[]).includes(one));
    return Object.fromEntries(shown.map(([one, member]) => [one, exampleOf(member, components, one)]));
  }
  if (items !== undefined) return [exampleOf(items as Json, components, name)];
  return scalarOf(schema);
}

function takes({ type, anyOf, enum: all, $ref }: Json, value: unknown): boolean {
  if (Array.isArray(all)) return all.includes(value);
  if (Array.isArray(type)) return type.some((one: string) => takes({ type: one }, value));
  if (Array.isArray(anyOf)) return anyOf.some((one: Json) => takes(one, value));
  if ($ref !== undefined) return typeof value === "object" && value !== null;
  if (type === undefined) return true;
  if (type === "integer" || type === "number") return typeof value === "number";
  if (type === "array" || type === "null") return type === "null" ? value === null : Array.isArray(value);
  return typeof value === type && value !== null;
}

function scalarOf({ type: types, enum: all, const: only, format, minimum = 0, additionalProperties }: Json): unknown {
  const type: unknown = Array.isArray(types) ? types[0] : types;
  if (only !== undefined) return only;
  if (Array.isArray(all)) return all[0];
  if (format === "date-time") return AT;
  if (type === "integer" || type === "number") return Math.max(Number(minimum), 0);
  if (type === "boolean") return true;
  if (type === "null") return null;
  if (type === "object" || additionalProperties !== undefined) return {};
  return type === "string" ? "text" : null;
}
