/**
 * The body of a recovery request: JSON within its limits, its fields read one by one, every fault answered at once, unknown fields
 * refused. Only own members are looked at, so that `__proto__` is one more unknown field (attack 22).
 */
import { LIMITS } from "../../../message/limits.ts";
import { BODY_BYTES, readText } from "../../body.ts";
import { type FieldFault, type Fields, readFields } from "../../contract/fields.ts";
import { checkJson } from "../../contract/payload-scanner.ts";
import { problem, type Reply } from "../../contract/problem.ts";
import { type ApiRequest, type Parsed, parsed, refused } from "../../http.ts";

export interface BodyOptions {
  readonly bytesMax?: number | undefined;
  /** No body at all is the empty object. */
  readonly optional?: boolean | undefined;
}

export async function readBody<T>(
  request: ApiRequest,
  read: (fields: Fields) => T,
  { bytesMax = BODY_BYTES.recovery, optional = false }: BodyOptions = {},
): Promise<Parsed<T>> {
  const text = await readText(request, bytesMax, optional);
  if (!text.ok) return text;
  const given = text.value === "" ? "{}" : text.value;
  checkJson(given, "invalid_request");
  const faults: FieldFault[] = [];
  const fields = readFields(JSON.parse(given), "", faults);
  const value = fields === undefined ? undefined : read(fields);
  fields?.refuseUnknown();
  return faults.length === 0 && fields !== undefined ? parsed(value as T) : refused(invalidRequest(faults));
}

export function invalidRequest(faults: readonly FieldFault[]): Reply {
  const errors = faults.map((fault) => ({ ...fault, code: "invalid_request" as const }));
  return problem("invalid_request", faults.map(({ field, detail }) => `${field}: ${detail}`).join("; "), { errors });
}

/** Text for the history: a reason, a note, an owner. Undefined when it is absent or does not fit. */
export function noteOf(fields: Fields, name: string, bytesMax: number = LIMITS.reasonBytesMax): string | undefined {
  const note = fields.text(name)?.trim();
  if (note === undefined) return undefined;
  if (note === "") fields.fault(name, "must not be blank");
  else if (Buffer.byteLength(note) > bytesMax || /\0|\p{Surrogate}/u.test(note)) {
    fields.fault(name, `may have at most ${bytesMax} bytes, without NUL or lone surrogates`);
  } else return note;
  return undefined;
}

/** As `noteOf`, and it must be there. */
export function reasonOf(fields: Fields): string {
  const reason = noteOf(fields, "reason");
  if (!fields.has("reason")) fields.fault("reason", "is missing: say why, it becomes part of the history");
  return reason ?? "";
}

/** A name: one line of at most `bytesMax` bytes that every store can keep. */
export function nameOf(fields: Fields, name: string, bytesMax = 255): string | undefined {
  const value = fields.text(name);
  if (value === undefined) return undefined;
  if (Buffer.byteLength(value) <= bytesMax && !/\p{Cc}|\p{Surrogate}/u.test(value)) return value;
  fields.fault(name, `may have at most ${bytesMax} bytes, without control characters or lone surrogates`);
  return undefined;
}

/** The version that a change insists on: the member `version`, else the header If-Match. */
export function versionOf(request: ApiRequest, fields: Fields): number | undefined {
  const version = fields.integer("version", 0, Number.MAX_SAFE_INTEGER);
  const header = request.header("if-match")?.trim();
  if (header === undefined || header === "*") return version;
  const match = /^(?:W\/)?"?([0-9]{1,15})"?$/.exec(header);
  const named = match?.[1] === undefined ? undefined : Number(match[1]);
  if (named === undefined) fields.fault("If-Match", 'must be the version, as in the ETag: "3"');
  else if (version !== undefined && version !== named) fields.fault("version", "is another one than that of If-Match");
  return version ?? named;
}
