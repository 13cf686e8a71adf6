/** Which group each failure belongs to, so that all processes agree: by group rules, then by templates. One call at a time. */
import { createHash } from "node:crypto";
import { afterOthers } from "../../platform/after-others.ts";
import type { Documents } from "../documents.ts";
import * as finger from "../fingerprint/fingerprint.ts";
import { scopeOf } from "../fingerprint/group-rules.ts";
import type { LearnerState } from "../fingerprint/learner.ts";
import type { TemplateStore } from "../fingerprint/template-store.ts";
import type { GroupIdentity } from "../groups/group.ts";
import { type GroupRuleBook, placeOf } from "../groups/rule-documents.ts";
import { groupedCode } from "../rules/code-words.ts";

type Failure = finger.Failure;

export type Scope = Pick<Failure, "topic" | "errorCode">;

/** So many characters are masked before others go on: a few long texts, or a whole batch of ordinary ones. */
const CHARS_AT_ONCE = 16_384;

async function masksOf(failures: readonly Failure[]): Promise<finger.Coarse[]> {
  const masks: finger.Coarse[] = [];
  let chars = 0;
  for (const failure of failures) {
    if (chars > CHARS_AT_ONCE) {
      await new Promise<void>(afterOthers);
      chars = 0;
    }
    masks.push(finger.coarse(failure));
    chars += failure.errorMessage.length + (failure.stackTrace?.length ?? 0);
  }
  return masks;
}

const inOneSpelling = (failure: Failure): Failure => ({ ...failure, errorCode: groupedCode(failure.errorCode) });

/** One document per scope, written by compare-and-set; a scope's name may hold anything, so the document's id is its digest. */
function templateDocuments(documents: Documents): TemplateStore {
  const idOf = (scope: string): string => createHash("sha256").update(scope).digest("hex").slice(0, 32);
  return {
    async load(scope, known) {
      const found = await documents.get("templates", idOf(scope));
      if (found === null) return { revision: 0, state: undefined };
      if (found.version === known) return { revision: known, state: undefined };
      return { revision: found.version, state: (JSON.parse(found.text) as { readonly state: LearnerState }).state };
    },
    async save(scope, state, version) {
      const text = JSON.stringify({ scope, state });
      const written = await documents.put({ kind: "templates", id: idOf(scope), text, version, actor: "system" });
      return written.kind === "done";
    },
  };
}

export type FailurePlaces = ReturnType<typeof createFailurePlaces>;

export function createFailurePlaces(documents: Documents, groupRules: () => Promise<GroupRuleBook>) {
  const fingerprints = new finger.Fingerprints();
  const templates = templateDocuments(documents);
  /** The size of a scope's learner, and the store's revision of all templates, when it was last brought in line. */
  const known = new Map<string, { readonly size: number; readonly revision: number }>();
  let book: GroupRuleBook | undefined;

  async function useRules(): Promise<GroupRuleBook> {
    const now = await groupRules();
    if (now !== book) fingerprints.useRules(now.rules);
    book = now;
    return now;
  }

  /** Takes over what other processes taught these scopes since; returns those whose templates are not what they were. */
  async function align(scopes: Iterable<Scope>): Promise<Map<string, Scope>> {
    const revision = await documents.revision("templates");
    const changed = new Map<string, Scope>();
    for (const { topic, errorCode } of scopes) {
      const scope = scopeOf(topic, errorCode);
      const before = known.get(scope);
      const sizeNow = () => fingerprints.learner(topic, errorCode)?.size ?? 0;
      if (before?.revision === revision && before.size === sizeNow()) continue;
      await fingerprints.open(templates, topic, errorCode);
      const size = sizeNow();
      if (known.size >= 2 * finger.FINGERPRINT_LIMITS.scopesMax) known.clear();
      known.set(scope, { size, revision });
      if (before?.size !== size) changed.set(scope, { topic, errorCode });
    }
    return changed;
  }

  function identity({ topic, sink, errorCode }: Failure, made: finger.Fingerprint): GroupIdentity {
    const { key, failureMatchId, template, topFrame = null, groupRule = null } = made;
    const kept = groupRule === null ? undefined : book?.byId.get(groupRule);
    if (kept?.target && kept.places.includes(placeOf(key))) return kept.target;
    return { fingerprint: key, failureMatchId, topic, sink, errorCode, template, topFrame, groupRule };
  }

  /** The templates of a scope as the store has them, to be asked freely. */
  async function trial({ topic, errorCode }: Scope): Promise<finger.Fingerprints> {
    const asked = new finger.Fingerprints({ rules: (await useRules()).rules });
    await asked.open({ load: templates.load, save: async () => true }, topic, errorCode);
    return asked;
  }

  return {
    fingerprints,
    /** `changed`: groups of these scopes may have become one. */
    async place(given: readonly Failure[]) {
      await useRules();
      const failures = given.map(inOneSpelling);
      const scopes = new Map(failures.map((failure) => [scopeOf(failure.topic, failure.errorCode), failure]));
      // Groups follow from the set of texts, in any order of learning; the keys that count are made when all processes agree.
      const masks = await masksOf(failures);
      for (const [i, failure] of failures.entries()) fingerprints.of(failure, masks[i]);
      const changed = await align(scopes.values());
      return { identities: failures.map((failure, i) => identity(failure, fingerprints.of(failure, masks[i]))), changed };
    },
    async align(scopes: readonly Scope[]): Promise<void> {
      await useRules();
      await align(scopes);
    },
    trial,
    /** What a failure would be, on templates of its own: a question teaches nothing. */
    async look(given: Failure): Promise<GroupIdentity> {
      const failure = inOneSpelling(given);
      const asked = await trial(failure);
      return identity(failure, asked.of(failure));
    },
  };
}
