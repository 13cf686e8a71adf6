/**
 * Where the templates of a scope are kept so that several processes agree: one versioned state per scope, written by
 * compare-and-set. `syncTemplates` brings a learner and the store together; the last process to sync has what all have learned.
 */
import { MakegoodError } from "../../message/errors.ts";
import { type LearnerState, TemplateLearner } from "./learner.ts";

export interface StoredTemplates {
  /** 0 when nothing is stored yet. */
  readonly revision: number;
  readonly state: LearnerState | undefined;
}

export interface TemplateStore {
  /** `known`: a revision whose state the caller has already; where it is still that one, the state may be left out. */
  load(scope: string, known?: number): Promise<StoredTemplates>;
  /** Writes only if the stored revision is still `expected`; false when another process was faster. */
  save(scope: string, state: LearnerState, expected: number): Promise<boolean>;
}

const ROUNDS_MAX = 20;

/** What a store had of a learner when the two were last brought together. */
interface Synced {
  readonly store: TemplateStore;
  readonly revision: number;
  readonly counts: string;
}

const lastSynced = new WeakMap<TemplateLearner, Synced>();

/**
 * Returns the learner to go on with: what the store has, and what `learner` knows beyond it. Ids of both resolve in it. At the
 * limit of a scope the store's rows come first, so that all processes keep the same ones. Where nobody else wrote since the last time, it is
 * the same learner and only what it learned is saved: to learn two thousand rows again for each new one would take most of a second.
 */
export async function syncTemplates(store: TemplateStore, learner: TemplateLearner): Promise<TemplateLearner> {
  const last = lastSynced.get(learner);
  const known = last?.store === store ? last : undefined;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { revision, state } = await store.load(learner.scope, known?.revision);
    if (known !== undefined && revision === known.revision) {
      const { counts } = learner;
      if (counts === known.counts) return learner;
      if (!(await store.save(learner.scope, learner.snapshot(), revision))) continue;
      lastSynced.set(learner, { store, revision: revision + 1, counts });
      return learner;
    }
    const mine = learner.snapshot();
    const both = TemplateLearner.of(learner.scope, state === undefined ? [mine] : [state, mine], learner.rowsMax);
    const next = both.snapshot();
    const stands = state !== undefined && same(state, next);
    if (!stands && !(await store.save(learner.scope, next, revision))) continue;
    lastSynced.set(both, { store, revision: stands ? revision : revision + 1, counts: both.counts });
    return both;
  }
  throw new MakegoodError(
    "revision_conflict",
    `The templates of ${learner.scope} changed ${ROUNDS_MAX} times while they were being saved: try again later.`,
    { scope: learner.scope },
  );
}

function same(a: LearnerState, b: LearnerState): boolean {
  return (
    a.version === b.version &&
    a.rows.length === b.rows.length &&
    a.merges.length === b.merges.length &&
    a.groups.length === b.groups.length &&
    a.rows.every((row, i) => row === b.rows[i])
  );
}
