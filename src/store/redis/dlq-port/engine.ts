/**
 * What the engine under the port can tell. Whether it keeps what it is given, in the port's three answers (DF-9): Redis is asked what it is set
 * to, every other store says it itself, and a check that cannot be made never passes. And what cannot be read any more, each named by one
 * alarm: what the engine has quarantined (its payload is gone, or of another type), and texts that another client has changed.
 */
import { errorText } from "../../../message/errors.ts";
import type { MessageView } from "../../../message/message.ts";
import type { Store } from "../../store.ts";
import type { RedisDurability } from "../durability.ts";
import type { Finding } from "../finding.ts";
import type { RedisStore } from "../redis-store.ts";
import type { AlarmKind, PersistenceCheck, Quarantined } from "./dlq-store.ts";
import { type Fields, fieldsOf, garbledOf, unreadableOf } from "./entry.ts";
import { bound } from "./obligations.ts";

export function isRedisStore(store: Store): store is RedisStore {
  return "quarantined" in store && "durability" in store;
}

export async function checkPersistence(store: Store, attestedBy = "the operator"): Promise<PersistenceCheck> {
  const checked: Record<string, string> = {};
  const answer = (state: PersistenceCheck["state"], reason: string, attested: string | null = null) =>
    ({ state, reason, checked, attested }) as const;
  if (!isRedisStore(store)) {
    await store.check();
    const { name, survives } = store.traits;
    return answer(survives === "nothing" ? "failed" : "verified", `${name} survives ${survives}`);
  }
  let found: RedisDurability;
  try {
    found = await store.durability();
  } catch (error) {
    return answer("unknown", `nothing could be read: ${errorText(error)}`);
  }
  const findings = found.nodes.flatMap((node) => node.findings);
  for (const { name, value, attested } of findings) if (value !== null && !attested) checked[name] ??= value;
  // Without an append-only file, with eviction, or with a disk that is written whenever the system likes, an entry may be gone.
  const bad = (finding: Finding): boolean => finding.required || finding.name === "appendfsync";
  const failed = findings.filter((finding) => finding.verdict === "failed" && bad(finding));
  if (failed.length > 0) return answer("failed", listed(failed));
  const unknown = findings.filter(({ verdict, required }) => verdict === "unknown" && required);
  if (unknown.length > 0) return answer("unknown", listed(unknown));
  const vouched = findings.filter(({ attested, required }) => attested && required);
  if (vouched.length > 0) return answer("verified", `attested by ${attestedBy}: ${listed(vouched)}`, attestedBy);
  const sync = found.appendfsync ?? "at an interval that could not be read";
  return answer("verified", `appendonly yes, appendfsync ${sync}, maxmemory-policy noeviction`);
}

const listed = (findings: readonly Finding[]): string =>
  [...new Set(findings.map(({ name, value, detail }) => `${name} ${value ?? "unknown"}: ${detail}`))].join("; ");

type Ring = (kind: AlarmKind, reservationId: string) => void;

export function createUnreadable(store: Store, pending: () => Promise<MessageView[]>, ring: Ring) {
  /** Texts that the engine can read: only here is it known what they should say. By message. */
  const garbled = new Map<string, Quarantined>();
  const alarmed = new Set<string>();

  /** One that was read just now, with what its payload says. */
  function note(view: MessageView, fields: Fields): void {
    const found = garbledOf(view, fields);
    if (found) garbled.set(view.id, found);
    bound(garbled);
  }

  /** `look`: everything is checked first. */
  async function read(look: boolean) {
    const { mended, found: unreadable } = isRedisStore(store) ? await store.quarantined(look) : { mended: 0, found: [] };
    if (look) {
      garbled.clear();
      for (const view of await pending()) note(view, fieldsOf(view.payload));
    }
    const found = [...unreadable.map(unreadableOf), ...garbled.values()];
    for (const { kind, reservation_id } of found) {
      if (!alarmed.has(reservation_id)) ring(kind, reservation_id);
      alarmed.add(reservation_id);
    }
    return { mended, found };
  }

  return { note, read, named: () => alarmed.size };
}
