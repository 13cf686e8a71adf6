/** Where the templates of a scope are kept so that several processes agree: a state per scope, written by compare-and-set. */
import { MakegoodError } from "../../message/errors.ts";
import { type LearnerState, TemplateLearner } from "./learner.ts";

export interface TemplateStore {
  /** `known`: a revision whose state the caller has already; where it is still that one, the state may be left out. 0: nothing is stored. */
  load(scope: string, known?: number): Promise<{ readonly revision: number; readonly state: LearnerState | undefined }>;
  /** Writes only if the stored revision is still `expected`; false when another process was faster. */
  save(scope: string, state: LearnerState, expected: number): Promise<boolean>;
}

const ROUNDS_MAX = 20;

/** What a store had of a learner when the two were last brought together. */
const lastSynced = new WeakMap<TemplateLearner, { store: TemplateStore; revision: number; counts: string }>();

/**
 * Returns the learner to go on with: what the store has, and what `learner` knows beyond it. Ids of both resolve in it. At the
 * limit of a scope the store's rows come first, so that all processes keep the same ones. Where nobody else wrote since the last time, it is
 * the same learner and only what it learned is saved: to learn two thousand rows again for each new one would take most of a second.
 */
export async function syncTemplates(store: TemplateStore, learner: TemplateLearner): Promise<TemplateLearner> {
  const { scope, rowsMax } = learner;
  const last = lastSynced.get(learner);
  const known = last?.store === store ? last : undefined;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { revision, state } = await store.load(scope, known?.revision);
    const alone = known?.revision === revision;
    if (alone && known.counts === learner.counts) return learner;
    const next = alone ? learner : new TemplateLearner(scope, rowsMax);
    if (!alone && state !== undefined) next.absorb(state);
    if (!alone) next.absorb(learner.snapshot());
    // Before anything is awaited: what is learned meanwhile is to be saved next time.
    const { counts } = next;
    const snapshot = next.snapshot();
    const stands = !alone && state !== undefined && same(state, snapshot);
    if (!stands && !(await store.save(scope, snapshot, revision))) continue;
    lastSynced.set(next, { store, revision: stands ? revision : revision + 1, counts });
    return next;
  }
  const text = `The templates of ${scope} changed ${ROUNDS_MAX} times while they were being saved: try again later.`;
  throw new MakegoodError("revision_conflict", text, { scope });
}

function same(a: LearnerState, b: LearnerState): boolean {
  const counts = ({ version, rows, merges, groups }: LearnerState) => [version, rows.length, merges.length, groups.length].join();
  return counts(a) === counts(b) && a.rows.every((row, i) => row === b.rows[i]);
}
