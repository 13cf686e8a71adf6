/**
 * The templates of every scope as documents of the store, so that all processes make the same fingerprints. One document per scope,
 * written by compare-and-set; a scope's name may hold anything, so the document's id is its digest.
 */
import { createHash } from "node:crypto";
import type { Documents } from "../documents.ts";
import type { LearnerState } from "../fingerprint/learner.ts";
import type { TemplateStore } from "../fingerprint/template-store.ts";

interface Kept {
  readonly scope: string;
  readonly state: LearnerState;
}

export function createTemplateDocuments(documents: Documents): TemplateStore {
  const idOf = (scope: string): string => createHash("sha256").update(scope).digest("hex").slice(0, 32);
  return {
    async load(scope, known) {
      const found = await documents.get("templates", idOf(scope));
      if (found === null) return { revision: 0, state: undefined };
      if (found.version === known) return { revision: known, state: undefined };
      return { revision: found.version, state: (JSON.parse(found.text) as Kept).state };
    },
    async save(scope, state, expected) {
      const text = JSON.stringify({ scope, state } satisfies Kept);
      const write = { kind: "templates", id: idOf(scope), text, version: expected, actor: "system" } as const;
      return (await documents.put(write)).kind === "done";
    },
  };
}
