/**
 * A template that became more general means that groups became one: the old ones are merged into what their key resolves to now, by
 * the system, on record. Only scopes that changed are looked at; what cannot be merged yet (it is being executed) is tried again.
 */
import type { Group, RecoveryStore } from "../../store/recovery.ts";
import type { Fingerprints } from "../fingerprint/fingerprint.ts";
import { scopeOf } from "../fingerprint/group-rules.ts";
import { line, SYSTEM } from "../provenance.ts";
import type { Scope } from "./place-failures.ts";

const PAGE = 200;
/** I10: scopes that wait for another try. */
const AGAIN_MAX = 1_000;

export interface GroupJoins {
  /** Looks at these scopes, and at those that had to wait. Returns how many groups were merged. */
  join(scopes: readonly Scope[]): Promise<number>;
}

export function createGroupJoins(
  recovery: Pick<RecoveryStore, "groups" | "groupOf" | "merge">,
  fingerprints: Pick<Fingerprints, "resolve">,
): GroupJoins {
  const again = new Map<string, Scope>();

  /** Whether it must be tried again, or what was done. */
  async function joinOne(group: Group): Promise<"merged" | "stays" | "later"> {
    const { topic, code, fingerprint, groupId } = group;
    const key = fingerprints.resolve(topic, code, fingerprint);
    if (key === fingerprint) return "stays";
    const found = await recovery.groupOf({ fingerprint: key });
    const into = found && (found.mergedInto ?? found.groupId);
    if (into === null || into === groupId) return "stays";
    const reason = `its template "${group.template}" became more general`;
    const provenance = [line("merged", SYSTEM, { groupId: into, reason, details: { from: groupId, into } })];
    const merged = await recovery.merge({ from: groupId, into, provenance });
    return merged.kind === "done" ? "merged" : merged.kind === "wrong_state" ? "later" : "stays";
  }

  async function joinScope(scope: Scope): Promise<number> {
    let merged = 0;
    let cursor: string | undefined;
    do {
      const page = await recovery.groups({ ...scope, limit: PAGE, cursor });
      for (const group of page.data) {
        const what = await joinOne(group);
        if (what === "merged") merged++;
        if (what === "later" && again.size < AGAIN_MAX) again.set(scopeOf(scope.topic, scope.code), scope);
      }
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return merged;
  }

  return {
    async join(scopes) {
      const due = new Map([...again, ...scopes.map((scope) => [scopeOf(scope.topic, scope.code), scope] as const)]);
      again.clear();
      let merged = 0;
      for (const scope of due.values()) merged += await joinScope(scope);
      return merged;
    },
  };
}
