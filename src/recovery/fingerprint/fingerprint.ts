/**
 * Which failures are the same: topic, sink, error code, the template of the message and the top frame of the stack, as one
 * versioned key with its `failure_match_id`. A key given out before a template became more general still resolves to the
 * group it became.
 */
import { createHash } from "node:crypto";
import { type GroupRule, type GroupRules, RuleTable, scopeOf } from "./group-rules.ts";
import { type Merge, type Template, TemplateLearner, templateId } from "./learner.ts";
import { mask } from "./mask.ts";
import { failureMatchId } from "./match-id.ts";
import { syncTemplates, type TemplateStore } from "./template-store.ts";
import { messageOf, topFrame as topFrameOf } from "./top-frame.ts";
import { FINGERPRINT_VERSION, RULE_VERSION } from "./version.ts";

/** I10. Past `scopesMax`, failures of new topics and codes are grouped by their mask alone; past `textCharsMax` a text is not read. */
export const FINGERPRINT_LIMITS = { textCharsMax: 4_096, scopesMax: 1_000, madeMax: 2_000 } as const;

export interface Failure {
  readonly topic: string;
  readonly sink: string;
  readonly errorCode: string;
  readonly errorMessage: string;
  /** A stack trace beside the text; a trace inside the text is found there. */
  readonly stackTrace?: string;
}

export interface Fingerprint {
  readonly key: string;
  readonly failureMatchId: string;
  readonly template: string;
  readonly topFrame: string | undefined;
  /** The hand-made rule that decided, if one did. */
  readonly groupRule: string | undefined;
}

/** What the mask alone says of a failure. */
export interface Coarse {
  readonly masked: string;
  readonly topFrame: string | undefined;
}

export function coarse({ errorMessage, stackTrace }: Pick<Failure, "errorMessage" | "stackTrace">): Coarse {
  const trace = stackTrace ?? (errorMessage.includes("\n") ? errorMessage : undefined);
  return { masked: mask(messageHead({ errorMessage })), topFrame: trace === undefined ? undefined : topFrameOf(trace) };
}

/** The part of a failure's text that counts: the message without its trace, up to the limit. */
export function messageHead({ errorMessage }: Pick<Failure, "errorMessage">): string {
  return messageOf(errorMessage).slice(0, FINGERPRINT_LIMITS.textCharsMax);
}

function placeId(sink: string, frame: string | undefined): string {
  return createHash("sha256")
    .update(`${sink}\n${frame ?? ""}`)
    .digest("hex")
    .slice(0, 12);
}

export interface FingerprintOptions {
  readonly rules?: GroupRules;
  readonly scopesMax?: number;
  readonly rowsMax?: number;
}

export class Fingerprints {
  private readonly learners = new Map<string, TemplateLearner>();
  /** The last fingerprint of each template: most failures of a group come from one place, and hashing costs more than the mask. */
  private readonly made = new Map<string, { sink: string; frame: string | undefined; fingerprint: Fingerprint }>();
  private readonly scopesMax: number;
  private readonly rowsMax: number | undefined;
  private rules: RuleTable;

  constructor({ rules = [], scopesMax = FINGERPRINT_LIMITS.scopesMax, rowsMax }: FingerprintOptions = {}) {
    this.rules = new RuleTable(rules);
    this.scopesMax = scopesMax;
    this.rowsMax = rowsMax;
  }

  /**
   * The fingerprint of a failure; learns from it. A caller that asks twice passes the mask's answer: the mask is most of the
   * work.
   */
  of(failure: Failure, { masked, topFrame: frame }: Coarse = coarse(failure)): Fingerprint {
    const { topic, errorCode, sink, errorMessage } = failure;
    const rule = this.rules.find(topic, errorCode, masked, errorMessage.slice(0, FINGERPRINT_LIMITS.textCharsMax));
    const template = rule === undefined ? this.templateOf(scopeOf(topic, errorCode), masked) : ruleTemplate(rule);
    const last = this.made.get(template.id);
    if (last !== undefined && last.sink === sink && last.frame === frame) return last.fingerprint;
    const version = rule === undefined ? FINGERPRINT_VERSION : RULE_VERSION;
    const key = `f${version}.${template.id}.${placeId(sink, frame)}`;
    const fingerprint: Fingerprint = {
      key,
      failureMatchId: failureMatchId(key),
      template: template.text,
      topFrame: frame,
      groupRule: rule?.id,
    };
    if (this.made.size >= FINGERPRINT_LIMITS.madeMax) this.made.clear();
    this.made.set(template.id, { sink, frame, fingerprint });
    return fingerprint;
  }

  /** From now on; what was grouped before keeps its group, and `of` says which rule put a failure elsewhere. */
  useRules(rules: GroupRules): void {
    this.rules = new RuleTable(rules);
  }

  /** The key that a key given out earlier has become, by generalisation or by a merge made by hand. */
  resolve(topic: string, code: string, key: string): string {
    const [version, id = "", place] = key.split(".");
    // A key of another version belongs to groups that were made otherwise: it stands for itself.
    if (version !== `f${FINGERPRINT_VERSION}` || place === undefined) return key;
    const scope = scopeOf(topic, code);
    const now = this.learners.get(scope)?.resolve(id)?.id ?? id;
    const rule = this.rules.mergedInto(id) ?? this.rules.mergedInto(now);
    return rule === undefined ? `${version}.${now}.${place}` : ruleFingerprint(rule, place).key;
  }

  /** The key it has become by generalisation alone, without what people decided. */
  learned(topic: string, code: string, key: string): string {
    const [version, id = "", place] = key.split(".");
    const now = this.learners.get(scopeOf(topic, code))?.resolve(id)?.id;
    return version !== `f${FINGERPRINT_VERSION}` || now === undefined ? key : `${version}.${now}.${place}`;
  }

  /** What the machine made one group of: the templates that became the one of this key, or were taken in by it. */
  merges(topic: string, code: string, key: string): readonly Merge[] {
    return this.learners.get(scopeOf(topic, code))?.merges(key.split(".")[1]) ?? [];
  }

  learner(topic: string, code: string): TemplateLearner | undefined {
    return this.learners.get(scopeOf(topic, code));
  }

  /** Brings every scope in line with the store. What is learned while a scope is being saved is kept. */
  async sync(store: TemplateStore): Promise<void> {
    for (const [scope, learner] of [...this.learners]) await this.bring(store, scope, learner);
  }

  /** Brings one scope in line with the store, also one that this process has not met yet. */
  async open(store: TemplateStore, topic: string, code: string): Promise<void> {
    const scope = scopeOf(topic, code);
    const learner = this.learnerOf(scope);
    if (learner !== undefined) await this.bring(store, scope, learner);
  }

  private async bring(store: TemplateStore, scope: string, learner: TemplateLearner): Promise<void> {
    const { counts } = learner;
    const synced = await syncTemplates(store, learner);
    if (synced !== learner && learner.counts !== counts) synced.absorb(learner.snapshot());
    this.learners.set(scope, synced);
  }

  private learnerOf(scope: string): TemplateLearner | undefined {
    let learner = this.learners.get(scope);
    if (learner === undefined && this.learners.size < this.scopesMax) {
      learner = new TemplateLearner(scope, this.rowsMax);
      this.learners.set(scope, learner);
    }
    return learner;
  }

  private templateOf(scope: string, masked: string): Template {
    return this.learnerOf(scope)?.learn(masked) ?? { id: templateId(scope, masked), text: masked };
  }
}

/** What a rule's own group is, at a place (the last part of a key). */
export function ruleFingerprint(rule: GroupRule, place: string): Pick<Fingerprint, "key" | "failureMatchId" | "template"> {
  const { id, text } = ruleTemplate(rule);
  const key = `f${RULE_VERSION}.${id}.${place}`;
  return { key, failureMatchId: failureMatchId(key), template: text };
}

function ruleTemplate(rule: GroupRule): Template {
  const id = templateId(scopeOf(rule.topic, rule.errorCode), `rule ${rule.id}`, RULE_VERSION);
  return { id, text: rule.templates.join(" | ") };
}
