/**
 * Why two failures are in one group, or why not, in facts a person can check: what is the same, what differs, which places
 * vary and with which values, which merge or rule brought them together. Does not teach the learner anything it has not seen.
 */
import { coarse, type Failure, type Fingerprints, messageHead } from "./fingerprint.ts";
import type { Merge } from "./learner.ts";
import { hiddenIn } from "./mask.ts";
import { type Token, tokenise } from "./tokens.ts";

export interface Variable {
  /** Counted from 0, in tokens of the template. */
  readonly place: number;
  readonly values: readonly [string, string];
  /** Other values that this place has shown. */
  readonly seen: readonly string[];
}

/** A part that the mask hides in both. */
export interface HiddenPair {
  readonly placeholder: string;
  readonly values: readonly [string, string];
}

export interface Why {
  readonly together: boolean;
  /** Of topic, sink, code, frame, template and rule. */
  readonly same: readonly string[];
  readonly different: readonly string[];
  readonly template: string;
  readonly masked: readonly [string, string];
  readonly variables: readonly Variable[];
  readonly hidden: readonly HiddenPair[];
  readonly merges: readonly Merge[];
  readonly text: string;
}

/** Both failures must have been given to `of` before; one that was not is learned now. */
export function why(fingerprints: Fingerprints, a: Failure, b: Failure): Why {
  const one = fingerprints.of(a);
  const other = fingerprints.of(b);
  // The second may have changed the template of the first.
  const [first, second] = [fingerprints.of(a), other];
  const facts: [string, boolean][] = [
    ["topic", a.topic === b.topic],
    ["sink", a.sink === b.sink],
    ["code", a.errorCode === b.errorCode],
    ["frame", first.topFrame === second.topFrame],
    ["template", first.template === second.template],
    ["rule", first.groupRule === second.groupRule],
  ];
  const together = first.key === second.key;
  const learner = fingerprints.learner(a.topic, a.errorCode);
  const masked: [string, string] = [coarse(a).masked, coarse(b).masked];
  const seen = learner?.valuesSeen(masked[0]) ?? new Map<number, string[]>();
  const merges = together ? fingerprints.merges(a.topic, a.errorCode, first.key) : [];
  const same = facts.filter(([, is]) => is).map(([name]) => name);
  const different = facts.filter(([, is]) => !is).map(([name]) => name);
  const variables = variablesOf(tokenise(masked[0]), tokenise(masked[1]), seen);
  const text = together
    ? `Same ${same.join(", ")}: "${first.template}".${variables.length > 0 ? ` ${variables.length} place(s) vary.` : ""}${one.key === first.key ? "" : " Their templates were merged."}`
    : `Different ${different.join(", ")}: "${first.template}" and "${second.template}".`;
  return { together, same, different, template: first.template, masked, variables, hidden: hiddenPairs(a, b), merges, text };
}

const PAIRS_MAX = 20;

/** Placeholders side by side, as far as the two texts have the same ones in the same order. */
function hiddenPairs(a: Failure, b: Failure): HiddenPair[] {
  const ours = hiddenIn(messageHead(a));
  const theirs = hiddenIn(messageHead(b));
  const out: HiddenPair[] = [];
  for (let i = 0; i < Math.min(ours.length, theirs.length, PAIRS_MAX); i++) {
    const [one, other] = [ours[i], theirs[i]];
    if (one === undefined || other === undefined || one.placeholder !== other.placeholder) break;
    out.push({ placeholder: one.placeholder, values: [one.text, other.text] });
  }
  return out;
}

function variablesOf(a: readonly Token[], b: readonly Token[], seen: ReadonlyMap<number, readonly string[]>): Variable[] {
  const out: Variable[] = [];
  for (let place = 0; place < Math.min(a.length, b.length); place++) {
    const values: [string, string] = [a[place]?.text ?? "", b[place]?.text ?? ""];
    const others = seen.get(place) ?? [];
    if (values[0] !== values[1] || others.length > 1) out.push({ place, values, seen: others.slice(0, 5) });
  }
  return out;
}
