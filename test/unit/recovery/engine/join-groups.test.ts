/** Groups that became one by what was learned: when the one that stays gets a suggestion again before the other one's ends. */
import { expect, it } from "vitest";
import type { Candidate } from "../../../../src/recovery/candidates/candidate.ts";
import { createGroupJoins, type GroupJoinsOptions } from "../../../../src/recovery/failures/join-groups.ts";
import type { Group } from "../../../../src/recovery/groups/group.ts";

const NOW = 1_760_000_000_000;
const REST_MS = 60_000;
const SCOPE = { topic: "t/x", errorCode: "E" };
const OPEN = { decision: "pending", executionStatus: "pending" } as Candidate;

/** What is asked of the store when group 1 became part of group 2, whose last candidate is `theirs`. */
async function asked(theirs: Partial<Candidate>): Promise<string[]> {
  const calls: string[] = [];
  const groups = [{ ...SCOPE, groupId: 1, fingerprint: "old", template: "x", mergedInto: null }] as Group[];
  const recovery = {
    groups: async ({ merged }: { merged?: boolean }) => ({ data: merged ? [] : groups, nextCursor: null }),
    groupOf: async () => ({ groupId: 2 }),
    candidateOf: async (groupId: number) => (groupId === 1 ? OPEN : { ...OPEN, ...theirs }),
    reopen: async (groupId: number) => calls.push(`reopen ${groupId}`),
    merge: async ({ from, into }: { from: number; into: number }) => {
      calls.push(`merge ${from} into ${into}`);
      return { kind: "done" };
    },
  };
  const joins = createGroupJoins({
    recovery: recovery as unknown as GroupJoinsOptions["recovery"],
    fingerprints: { resolve: () => "new", learned: () => "new" },
    settings: { ids: () => "", rejectedRestMs: REST_MS },
    clock: { wallMs: () => NOW } as GroupJoinsOptions["clock"],
  });
  expect(await joins.join([SCOPE])).toBe(1);
  return calls;
}

it("a rejected suggestion rests over a join; after that, or where it was executed, the next one comes before the merge", async () => {
  const rejected = (agoMs: number) => asked({ decision: "rejected", updatedAt: new Date(NOW - agoMs) });
  expect(await rejected(REST_MS - 1)).toEqual(["merge 1 into 2"]);
  expect(await rejected(REST_MS)).toEqual(["reopen 2", "merge 1 into 2"]);
  expect(await asked({ decision: "approved", executionStatus: "failed" })).toEqual(["reopen 2", "merge 1 into 2"]);
  expect(await asked({})).toEqual(["merge 1 into 2"]);
});
