/**
 * Whether the servers behind the port keep what they are given, in the port's three answers (DF-9). What each node says is read
 * by `../durability.ts`, with plain commands; a check that cannot be made is `unknown` and never passes.
 */
import { errorText } from "../../../message/errors.ts";
import { readDurability } from "../durability.ts";
import type { Finding } from "../finding.ts";
import type { RedisPort } from "../port.ts";
import type { PersistenceCheck } from "./dlq-store.ts";

export async function checkPersistence(redis: RedisPort): Promise<PersistenceCheck> {
  let found: Awaited<ReturnType<typeof readDurability>>;
  try {
    found = await readDurability(redis);
  } catch (error) {
    return { state: "unknown", reason: `nothing could be read: ${errorText(error)}`, checked: {} };
  }
  const findings = found.nodes.flatMap((node) => node.findings);
  const checked: Record<string, string> = {};
  for (const { name, value } of findings) if (value !== null) checked[name] ??= value;
  // Without an append-only file, with eviction, or with a disk that is written whenever the system likes, an entry may be gone.
  const bad = (finding: Finding): boolean => finding.required || finding.name === "appendfsync";
  const failed = findings.filter((finding) => finding.verdict === "failed" && bad(finding));
  if (failed.length > 0) return { state: "failed", reason: told(failed), checked };
  const unknown = findings.filter(({ verdict, required }) => verdict === "unknown" && required);
  if (unknown.length > 0) return { state: "unknown", reason: told(unknown), checked };
  const sync = found.appendfsync ?? "at an interval that could not be read";
  return { state: "verified", reason: `appendonly yes, appendfsync ${sync}, maxmemory-policy noeviction`, checked };
}

const told = (findings: readonly Finding[]): string =>
  [...new Set(findings.map(({ name, value, detail }) => `${name} ${value ?? "unknown"}: ${detail}`))].join("; ");
