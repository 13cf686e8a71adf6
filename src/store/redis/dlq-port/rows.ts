/**
 * What the port's scripts return, turned into entries, records and finds. A reply of another shape than the script's own is a
 * broken server or a broken client and is thrown, never guessed at.
 */
import { MakegoodError } from "../../../message/errors.ts";
import { TERMINAL_FIELDS } from "./claim-scripts.ts";
import type { AlarmKind, DLQEntry, Quarantined, TerminalRecord } from "./dlq-store.ts";
import { toIso } from "./entry.ts";
import { parseMember } from "./keys.ts";
import { ENTRY_FIELDS } from "./scripts.ts";

export function list(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply;
  throw new MakegoodError("store_unavailable", `Redis answered ${JSON.stringify(reply)} where a list was due`);
}

function named<F extends string>(fields: readonly F[], reply: unknown): Record<F, string> {
  const values = list(reply);
  return Object.fromEntries(fields.map((field, i) => [field, values[i] == null ? "" : String(values[i])])) as Record<F, string>;
}

export function toEntry(reply: unknown): DLQEntry {
  const row = named(ENTRY_FIELDS, reply);
  return {
    reservation_id: row.reservation_id,
    tenant_id: row.tenant_id,
    actual_cost_micro: row.actual_cost_micro,
    trace_id: row.trace_id,
    reason: row.reason,
    response_status: row.response_status === "" ? null : Number(row.response_status),
    attempt_count: Number(row.attempt_count),
    next_attempt_at: toIso(Number(row.next_ms)),
    created_at: row.created_at === "" ? toIso(Number(row.created_ms)) : row.created_at,
  };
}

/** Null where there is no record. */
export function toTerminal(reply: unknown): TerminalRecord | null {
  if (list(reply).length === 0) return null;
  const row = named(TERMINAL_FIELDS, reply);
  const closed = row.resolution !== "";
  return {
    ...toEntry(reply),
    terminal_reason: row.terminal_reason,
    terminal_at: toIso(Number(row.terminal_ms)),
    attempts_before: Number(row.attempts_before),
    resolution: closed ? (row.resolution as "resolved" | "discarded") : "open",
    resolved_by: closed ? row.resolved_by : null,
    resolved_reason: closed ? row.resolved_reason : null,
  };
}

/** `pairs`: members and scores in turn; `details`: what READ_QUARANTINE says of each. */
export function toQuarantined(pairs: readonly unknown[], details: readonly unknown[]): Quarantined[] {
  return details.map((detail, i) => {
    const { kind, id } = parseMember(String(pairs[2 * i]));
    const [type, shown] = list(detail);
    const fields: Record<string, string> = type === "hash" ? {} : { redis_type: String(type) };
    const flat = list(shown).map(String);
    for (let at = 0; at + 1 < flat.length; at += 2) fields[flat[at] as string] = flat[at + 1] as string;
    return { kind: kind as AlarmKind, reservation_id: id, at: toIso(Number(pairs[2 * i + 1])), fields };
  });
}
