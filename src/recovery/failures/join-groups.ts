/**
 * A template that became more general means that groups became one: the old ones are merged into what their key resolves to now, by the
 * system, on record. Only scopes that changed are looked at; what cannot be merged yet (it is executed, or the store failed) is tried again.
 */
import type { Clock } from "../../platform/clock.ts";
import { isClosed, isExecuting } from "../candidates/candidate-state.ts";
import { type IngestSettings, makesRoom } from "../candidates/rounds.ts";
import type { Fingerprints } from "../fingerprint/fingerprint.ts";
import { scopeOf } from "../fingerprint/group-rules.ts";
import type { Group } from "../groups/group.ts";
import { everyPage } from "../pages.ts";
import { line, SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import { mayPass } from "./intake.ts";
import type { Scope } from "./place-failures.ts";

/** I10: scopes that wait for another try. */
const AGAIN_MAX = 1_000;

export interface GroupJoinsOptions {
  readonly recovery: Pick<Records, "groups" | "groupOf" | "merge" | "candidateOf" | "reopen">;
  readonly fingerprints: Pick<Fingerprints, "resolve" | "learned">;
  readonly settings: IngestSettings;
  readonly clock: Clock;
}

export type GroupJoins = ReturnType<typeof createGroupJoins>;

type Done = "merged" | "stays" | "later";

export function createGroupJoins({ recovery, fingerprints, settings, clock }: GroupJoinsOptions) {
  const again = new Map<string, Scope>();

  async function merge(from: number, into: number, reason: string): Promise<Done> {
    const [mine, theirs] = [await recovery.candidateOf(from), await recovery.candidateOf(into)];
    if (mine && isExecuting(mine)) return "later";
    // Before the merge: it ends the suggestion of `from`, and a process killed in between must not leave its failures without one.
    const bare = mine && !isClosed(mine) && theirs && isClosed(theirs);
    if (bare && makesRoom(theirs, new Date(clock.wallMs()), settings.rejectedRestMs)) {
      await recovery.reopen(into, settings, [line("reopened", SYSTEM, { groupId: into, reason })]);
    }
    const provenance = [line("merged", SYSTEM, { groupId: into, reason, details: { from, into } })];
    const merged = await recovery.merge({ from, into, provenance });
    return merged.kind === "done" ? "merged" : merged.kind === "wrong_state" ? "later" : "stays";
  }

  async function joinOne({ topic, errorCode, fingerprint, groupId, template }: Group): Promise<Done> {
    const key = fingerprints.resolve(topic, errorCode, fingerprint);
    if (key === fingerprint) return "stays";
    const found = await recovery.groupOf({ fingerprint: key });
    if (found === null || found.groupId === groupId) return "stays";
    return merge(groupId, found.groupId, `its template "${template}" became more general`);
  }

  /** What a merged group has become belongs where it was put; a general group that a person put elsewhere stays there. */
  async function followOne({ topic, errorCode, fingerprint, groupId, mergedInto }: Group, asked: Set<string>): Promise<Done> {
    const key = fingerprints.learned(topic, errorCode, fingerprint);
    if (mergedInto === null || key === fingerprint || asked.has(`${key} ${mergedInto}`)) return "stays";
    asked.add(`${key} ${mergedInto}`);
    const found = await recovery.groupOf({ fingerprint: key });
    if (found === null || found.fingerprint !== key || found.groupId === mergedInto) return "stays";
    return merge(found.groupId, mergedInto, `it covers group ${groupId}, which is part of group ${mergedInto}`);
  }

  async function joinScope(scope: Scope): Promise<Done[]> {
    const done: Done[] = [];
    const asked = new Set<string>();
    for (const merged of [false, true]) {
      for await (const page of everyPage((at) => recovery.groups({ ...scope, merged, ...at }))) {
        for (const group of page) done.push(merged ? await followOne(group, asked) : await joinOne(group));
      }
    }
    return done;
  }

  return {
    /** Looks at these scopes, and at those that had to wait. Returns how many groups were merged. */
    async join(scopes: readonly Scope[]): Promise<number> {
      const due = new Map([...again, ...scopes.map((scope) => [scopeOf(scope.topic, scope.errorCode), scope] as const)]);
      // Before anything is asked of the store: what it fails waits as well.
      for (const [name, scope] of due) if (again.size < AGAIN_MAX) again.set(name, scope);
      let merged = 0;
      let broken: unknown;
      for (const [name, scope] of due) {
        try {
          const done = await joinScope(scope);
          merged += done.filter((each) => each === "merged").length;
          if (!done.includes("later")) again.delete(name);
        } catch (error) {
          // A group that cannot be joined does not stop the others; a store that is away stops them all.
          if (mayPass(error)) throw error;
          broken ??= error;
        }
      }
      if (broken !== undefined) throw broken;
      return merged;
    },
  };
}
