/**
 * Which group each failure belongs to, so that all processes agree: group rules first, then templates, brought in line with the store
 * whenever this process learned something or another one did. One call at a time; the caller sees to that.
 */
import { afterOthers } from "../../platform/after-others.ts";
import type { Documents } from "../documents.ts";
import {
  type Coarse,
  coarse,
  type Failure,
  FINGERPRINT_LIMITS,
  type Fingerprint,
  Fingerprints,
} from "../fingerprint/fingerprint.ts";
import { scopeOf } from "../fingerprint/group-rules.ts";
import type { GroupIdentity } from "../groups/group.ts";
import { type GroupRuleBook, placeOf } from "../groups/rule-documents.ts";
import { groupedCode } from "../rules/code-words.ts";
import { createTemplateDocuments } from "./template-documents.ts";

export interface Scope {
  readonly topic: string;
  readonly errorCode: string;
}

export interface Placed {
  readonly identities: readonly GroupIdentity[];
  /** Scopes whose templates are not what they were: groups of theirs may have become one. */
  readonly changed: readonly Scope[];
}

export interface FailurePlaces {
  readonly fingerprints: Fingerprints;
  place(failures: readonly Failure[]): Promise<Placed>;
  /** Takes over what other processes taught these scopes since. */
  align(scopes: readonly Scope[]): Promise<void>;
  /** What a failure would be, on templates of its own: a question teaches nothing. */
  look(failure: Failure): Promise<GroupIdentity>;
  /** The templates of a scope as the store has them, to be asked freely. */
  trial(scope: Scope): Promise<Fingerprints>;
}

interface Known {
  /** The size of its learner, and the store's revision of all templates, when it was last brought in line. */
  size: number;
  revision: number;
}

/** So many characters are masked before others go on: a few long texts, or a whole batch of ordinary ones. */
const CHARS_AT_ONCE = 16_384;

async function masksOf(failures: readonly Failure[]): Promise<Coarse[]> {
  const masks: Coarse[] = [];
  let chars = 0;
  for (const failure of failures) {
    if (chars > CHARS_AT_ONCE) {
      await new Promise<void>(afterOthers);
      chars = 0;
    }
    masks.push(coarse(failure));
    chars += failure.errorMessage.length + (failure.stackTrace?.length ?? 0);
  }
  return masks;
}

const inOneSpelling = (failure: Failure): Failure => {
  const errorCode = groupedCode(failure.errorCode);
  return errorCode === failure.errorCode ? failure : { ...failure, errorCode };
};

export interface FailurePlacesOptions {
  readonly documents: Documents;
  readonly groupRules: () => Promise<GroupRuleBook>;
}

export function createFailurePlaces({ documents, groupRules }: FailurePlacesOptions): FailurePlaces {
  const fingerprints = new Fingerprints();
  const templates = createTemplateDocuments(documents);
  const known = new Map<string, Known>();
  let book: GroupRuleBook | undefined;

  async function useRules(): Promise<GroupRuleBook> {
    const now = await groupRules();
    if (now !== book) fingerprints.useRules(now.rules);
    book = now;
    return now;
  }

  /** Brings a scope in line if it is out of line; says whether its templates changed by that. */
  async function alignOne({ topic, errorCode }: Scope, revision: number): Promise<boolean> {
    const scope = scopeOf(topic, errorCode);
    const before = known.get(scope);
    const size = fingerprints.learner(topic, errorCode)?.size ?? 0;
    if (before !== undefined && before.revision === revision && before.size === size) return false;
    await fingerprints.open(templates, topic, errorCode);
    const after = fingerprints.learner(topic, errorCode)?.size ?? 0;
    if (known.size >= 2 * FINGERPRINT_LIMITS.scopesMax) known.clear();
    known.set(scope, { size: after, revision });
    return before === undefined || before.size !== after;
  }

  function identity(
    { topic, sink, errorCode }: Failure,
    { key, failureMatchId, template, topFrame, groupRule }: Fingerprint,
  ): GroupIdentity {
    const kept = groupRule === undefined ? undefined : book?.byId.get(groupRule);
    if (kept?.target && kept.places.includes(placeOf(key))) return kept.target;
    return {
      fingerprint: key,
      failureMatchId,
      topic,
      sink,
      errorCode,
      template,
      topFrame: topFrame ?? null,
      groupRule: groupRule ?? null,
    };
  }

  async function trial({ topic, errorCode }: Scope): Promise<Fingerprints> {
    const asked = new Fingerprints({ rules: (await useRules()).rules });
    await asked.open({ load: templates.load, save: async () => true }, topic, errorCode);
    return asked;
  }

  return {
    fingerprints,
    async place(given) {
      await useRules();
      const failures = given.map(inOneSpelling);
      const scopes = new Map(failures.map(({ topic, errorCode }) => [scopeOf(topic, errorCode), { topic, errorCode }]));
      const changed = new Map<string, Scope>();
      // Groups follow from the set of texts, in any order of learning; the keys that count are made when all processes agree.
      const masks = await masksOf(failures);
      for (const [i, failure] of failures.entries()) fingerprints.of(failure, masks[i]);
      const revision = await documents.revision("templates");
      for (const [name, scope] of scopes) if (await alignOne(scope, revision)) changed.set(name, scope);
      return {
        identities: failures.map((failure, i) => identity(failure, fingerprints.of(failure, masks[i]))),
        changed: [...changed.values()],
      };
    },
    async align(scopes) {
      await useRules();
      const revision = await documents.revision("templates");
      for (const scope of scopes) await alignOne(scope, revision);
    },
    trial,
    async look(given) {
      const failure = inOneSpelling(given);
      const asked = await trial(failure);
      return identity(failure, asked.of(failure));
    },
  };
}
