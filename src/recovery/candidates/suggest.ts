/**
 * A fresh suggestion for a group, because a person asked: opens the next round where the last one is closed, and evaluates it
 * now.
 */
import { MakegoodError } from "../../message/errors.ts";
import { existingGroup } from "../groups/read.ts";
import { line } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import type { Candidate } from "./candidate.ts";
import type { Evaluator } from "./evaluate-candidate.ts";

export interface SuggestDeps {
  readonly recovery: Pick<Records, "group" | "reopen">;
  readonly evaluator: Pick<Evaluator, "evaluate">;
  /** The engine's own topics must exist before an evaluation is queued. */
  readonly prepare: () => Promise<void>;
  readonly ids: () => string;
}

export async function suggest(
  { recovery, evaluator, prepare, ids }: SuggestDeps,
  groupId: number,
  actor: Actor,
): Promise<Candidate> {
  await existingGroup(recovery, groupId);
  await prepare();
  const asked = await recovery.reopen(groupId, { ids, asked: true }, [line("suggestion_asked", actor, { groupId })]);
  if (asked === null) throw new MakegoodError("group_not_found", `There is no group ${groupId}.`, { groupId });
  // At once, because the person waits for it; the message that was queued with it finds it done.
  return (await evaluator.evaluate(asked.candidateId)).candidate;
}
