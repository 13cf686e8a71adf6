/**
 * Which failures are the same: topic, sink, error code, the template of the message and the top frame of the stack, as one versioned
 * key with its `failure_match_id`. A key given out before a template became more general resolves to the group it became.
 */
import { createHash } from "node:crypto";
import { type GroupRule, type GroupRules, RuleTable, scopeOf } from "./group-rules.ts";
import { FINGERPRINT_VERSION, type Merge, type Template, TemplateLearner, templateId } from "./learner.ts";
import { mask } from "./mask.ts";
import { syncTemplates, type TemplateStore } from "./template-store.ts";
import { messageOf, topFrame as topFrameOf } from "./trace.ts";

/** I10. Past `scopesMax`, failures of new topics and codes are grouped by their mask alone; past `textCharsMax` a text is not read. */
export const FINGERPRINT_LIMITS = { textCharsMax: 4_096, scopesMax: 1_000, madeMax: 2_000 } as const;
/** Of the keys of rules: what a person decided keeps its group, however fingerprints are made. */
const RULE_VERSION = 1;

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

export type Coarse = ReturnType<typeof coarse>;

/** What the mask alone says of a failure. */
export function coarse({ errorMessage, stackTrace }: Pick<Failure, "errorMessage" | "stackTrace">) {
  const trace = stackTrace ?? (errorMessage.includes("\n") ? errorMessage : undefined);
  return { masked: mask(messageHead(errorMessage)), topFrame: trace === undefined ? undefined : topFrameOf(trace) };
}

/** The part of a failure's text that counts: the message without its trace, up to the limit. */
export function messageHead(errorMessage: string): string {
  return messageOf(errorMessage).slice(0, FINGERPRINT_LIMITS.textCharsMax);
}

/** Our own namespace; it never changes, because every id depends on it. */
const FAILURE_MATCH_NAMESPACE = Buffer.from("5f1c7c0e8f0b5d3a9c642b7a1e90d4f3", "hex");

/** A name-based id (UUID version 5): the same in every process, without asking anyone. */
export function failureMatchId(key: string): string {
  const bytes = createHash("sha1").update(FAILURE_MATCH_NAMESPACE).update(key, "utf8").digest();
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return bytes.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function placeId(sink: string, frame: string | undefined): string {
  const hash = createHash("sha256").update(`${sink}\n${frame ?? ""}`);
  return hash.digest("hex").slice(0, 12);
}

function identified(version: number, { id, text }: Template, place: string) {
  const key = `f${version}.${id}.${place}`;
  return { key, failureMatchId: failureMatchId(key), template: text };
}

function ruleTemplate({ id, topic, errorCode, templates }: GroupRule): Template {
  return { id: templateId(scopeOf(topic, errorCode), `rule ${id}`, RULE_VERSION), text: templates.join(" | ") };
}

/** What a rule's own group is, at a place (the last part of a key). */
export function ruleFingerprint(rule: GroupRule, place: string) {
  return identified(RULE_VERSION, ruleTemplate(rule), place);
}

export class Fingerprints {
  private readonly learners = new Map<string, TemplateLearner>();
  /** The last fingerprint of each template: most failures of a group come from one place, and hashing costs more than the mask. */
  private readonly made = new Map<string, { sink: string; fingerprint: Fingerprint }>();
  private readonly scopesMax: number;
  private rules: RuleTable;

  constructor({ rules = [] as GroupRules, scopesMax = FINGERPRINT_LIMITS.scopesMax as number } = {}) {
    this.rules = new RuleTable(rules);
    this.scopesMax = scopesMax;
  }

  /** The fingerprint of a failure; learns from it. A caller that asks twice passes the mask's answer: the mask is most of the work. */
  of(failure: Failure, { masked, topFrame }: Coarse = coarse(failure)): Fingerprint {
    const { topic, errorCode, sink, errorMessage } = failure;
    const rule = this.rules.find(topic, errorCode, masked, errorMessage.slice(0, FINGERPRINT_LIMITS.textCharsMax));
    const template = rule === undefined ? this.templateOf(scopeOf(topic, errorCode), masked) : ruleTemplate(rule);
    const last = this.made.get(template.id);
    if (last !== undefined && last.sink === sink && last.fingerprint.topFrame === topFrame) return last.fingerprint;
    const version = rule === undefined ? FINGERPRINT_VERSION : RULE_VERSION;
    const fingerprint = { ...identified(version, template, placeId(sink, topFrame)), topFrame, groupRule: rule?.id };
    if (this.made.size >= FINGERPRINT_LIMITS.madeMax) this.made.clear();
    this.made.set(template.id, { sink, fingerprint });
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
    const now = this.learned(topic, code, key);
    const rule = this.rules.mergedInto(id) ?? this.rules.mergedInto(now.split(".")[1] ?? "");
    return rule === undefined ? now : ruleFingerprint(rule, place).key;
  }

  /** The key it has become by generalisation alone, without what people decided. */
  learned(topic: string, code: string, key: string): string {
    const [version, id = "", place] = key.split(".");
    const now = this.learner(topic, code)?.resolve(id)?.id;
    return version !== `f${FINGERPRINT_VERSION}` || now === undefined ? key : `${version}.${now}.${place}`;
  }

  /** What the machine made one group of: the templates that became the one of this key, or were taken in by it. */
  merges(topic: string, code: string, key: string): readonly Merge[] {
    return this.learner(topic, code)?.merges(key.split(".")[1]) ?? [];
  }

  learner(topic: string, code: string): TemplateLearner | undefined {
    return this.learners.get(scopeOf(topic, code));
  }

  /** Brings a scope in line with the store, also one that is new here. What is learned while it is being saved is kept. */
  async open(store: TemplateStore, topic: string, code: string): Promise<void> {
    const scope = scopeOf(topic, code);
    const learner = this.learnerOf(scope);
    if (learner === undefined) return;
    const { counts } = learner;
    const synced = await syncTemplates(store, learner);
    if (synced !== learner && learner.counts !== counts) synced.absorb(learner.snapshot());
    this.learners.set(scope, synced);
  }

  private learnerOf(scope: string): TemplateLearner | undefined {
    let learner = this.learners.get(scope);
    if (learner === undefined && this.learners.size < this.scopesMax) {
      learner = new TemplateLearner(scope);
      this.learners.set(scope, learner);
    }
    return learner;
  }

  private templateOf(scope: string, masked: string): Template {
    return this.learnerOf(scope)?.learn(masked) ?? { id: templateId(scope, masked), text: masked };
  }
}
