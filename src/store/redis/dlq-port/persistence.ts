/**
 * Whether the engine under the port keeps what it is given, in the port's three answers (DF-9); a check that cannot be made never passes. Redis
 * is asked what it is set to, every other store says it itself.
 */
import { errorText } from "../../../message/errors.ts";
import type { Store } from "../../store.ts";
import type { RedisDurability } from "../durability.ts";
import type { Finding } from "../finding.ts";
import type { RedisStore } from "../redis-store.ts";
import type { PersistenceCheck } from "./dlq-store.ts";

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
