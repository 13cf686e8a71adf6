/**
 * The line that the ERROR log gets when nothing but memory could keep a message, or when something cannot be a message at all: one JSON
 * object with the whole entry in it, never cut, and the way back from such a line to the entry (DF-30).
 */
import { escapeControl } from "../../../observe/log.ts";
import { type EntryForm, type EntryRead, entryJson, type HandedDown, maskedText, readEntry } from "./handed-down.ts";
import type { Sealer } from "./seal.ts";

const ENTRY = "makegood_entry";
const REFUSED = "makegood_refused";
/** What was refused may be of any size; this much of it is shown. */
const REFUSED_CHARS_MAX = 4 * 1_048_576;

const head = (atMs: number, message: string) => ({ time: new Date(atMs).toISOString(), level: "error", message });

export function entryLine(entry: HandedDown, why: string, form: EntryForm): string {
  const { id, topic } = entry.message;
  const text = `makegood: message ${id} of ${topic} is kept in memory only (${why}); \`makegood journal import\` reads this line back`;
  // The entry as it is printed: parsed and printed again it could lose digits.
  const line = JSON.stringify({ ...head(entry.atMs, text), event: "memory_rung", topic, id });
  return escapeControl(`${line.slice(0, -1)},"${ENTRY}":${entryJson(entry, form)}}`);
}

/** `text` as it was given; with masked fields it leaves only masked or sealed. */
export function refusedLine(
  atMs: number,
  why: string,
  fields: Readonly<Record<string, unknown>>,
  text: string,
  form: EntryForm,
): string {
  const { sealer, maskFields = [] } = form;
  const cut = text.length > REFUSED_CHARS_MAX ? text.slice(0, REFUSED_CHARS_MAX) : text;
  const shown = maskFields.length === 0 ? { text: cut } : { text_masked: maskedText(text, maskFields) ?? "[masked]" };
  const sealed = sealer && maskFields.length > 0 ? { sealed: sealer.seal(cut, String(fields.id ?? "")) } : {};
  const refused = { ...fields, characters: text.length, ...shown, ...sealed };
  return escapeControl(JSON.stringify({ ...head(atMs, `makegood: refused: ${why}`), event: "refused", [REFUSED]: refused }));
}

/** What a line of a log holds: an entry, something a person has to look at, or nothing of ours (null). */
export function readLine(line: string, sealer: Sealer | null): EntryRead | null {
  if (!line.includes(ENTRY) && !line.includes(REFUSED)) return null;
  const found = find(line);
  if (found === null) return { ok: false, fault: "the line is cut, is not JSON, or has its entry inside of another text" };
  if (REFUSED in found) return { ok: false, fault: "it was refused as a message and needs a person" };
  return readEntry(found[ENTRY], sealer);
}

/** What collectors put in front of a line, and the members under which they keep it. Receivers and producers write into all others. */
const PREFIX =
  /^(?:\S+ (?:stdout|stderr) [FP] |[\w:.,+ -]{0,60} [\w.-]+(?:\[[\w.]+\])?: |[\w.-]+ +\| |\[[\w./-]+\] |[\dT:.,Z+ -]{0,40})$/;
const WRAPPERS = ["log", "message", "msg", "MESSAGE", "line", "_raw", "textPayload", "jsonPayload"];

/** An entry is taken from a whole line only: one inside of another text may have been forged by the author of that text. */
function find(text: string): Record<string, unknown> | null {
  const at = text.indexOf("{");
  if (at === -1 || !PREFIX.test(text.slice(0, at))) return null;
  try {
    return unwrap(JSON.parse(text.slice(at, text.lastIndexOf("}") + 1)), 0);
  } catch {
    return null;
  }
}

function unwrap(value: unknown, depth: number): Record<string, unknown> | null {
  if (typeof value === "string") return value.startsWith("{") ? unwrap(JSON.parse(value), depth) : null;
  if (typeof value !== "object" || value === null || depth > 4) return null;
  if (Object.hasOwn(value, ENTRY) || Object.hasOwn(value, REFUSED)) return value as Record<string, unknown>;
  for (const name of WRAPPERS) {
    const found = Object.hasOwn(value, name) ? unwrap((value as Record<string, unknown>)[name], depth + 1) : null;
    if (found) return found;
  }
  return null;
}
