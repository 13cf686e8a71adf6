/**
 * What a fingerprint learned, kept in one process: the seam's simplest store, for tests.
 */
import type { LearnerState } from "../../../src/recovery/fingerprint/learner.ts";
import type { TemplateStore } from "../../../src/recovery/fingerprint/template-store.ts";

export function createMemoryTemplateStore(): TemplateStore {
  const kept = new Map<string, { revision: number; text: string }>();
  return {
    async load(scope) {
      const found = kept.get(scope);
      return found === undefined
        ? { revision: 0, state: undefined }
        : { revision: found.revision, state: JSON.parse(found.text) as LearnerState };
    },
    async save(scope, state, expected) {
      const revision = kept.get(scope)?.revision ?? 0;
      if (revision !== expected) return false;
      kept.set(scope, { revision: revision + 1, text: JSON.stringify(state) });
      return true;
    },
  };
}
