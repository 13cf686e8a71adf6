/**
 * Why the failures of a group are together, in sentences a person can check: what they share, what differs between two of them, and
 * which decision of a person put them there.
 */

import type { Occurrence } from "../failures/failure.ts";
import type { Failure, Fingerprints } from "../fingerprint/fingerprint.ts";
import { type Merge, OVERFLOW } from "../fingerprint/learner.ts";
import { why } from "../fingerprint/why.ts";
import type { Group } from "./group.ts";
import type { KeptGroupRule } from "./rule-documents.ts";

const VALUES_SHOWN = 5;

export function failureOf(group: Pick<Group, "topic" | "sink">, { errorCode, errorMessage, stackTrace }: Occurrence): Failure {
  return { topic: group.topic, sink: group.sink, errorCode, errorMessage, ...(stackTrace === null ? {} : { stackTrace }) };
}

export function explainGroup(
  group: Group,
  occurrences: readonly Occurrence[],
  fingerprints: Fingerprints,
  rule: KeptGroupRule | undefined,
): string[] {
  const sentences = [
    `They share topic ${group.topic}, ${group.sink === "" ? "no named sink" : `sink ${group.sink}`}, error code ${group.errorCode} and the text "${group.template}".`,
  ];
  if (group.template === OVERFLOW) {
    sentences.push("This is what fitted no template after too many different texts: they may be different failures.");
  }
  if (group.topFrame !== null) sentences.push(`The topmost frame of their stack is ${group.topFrame}.`);
  if (rule !== undefined) sentences.push(`A person decided so (${rule.rule.kind} ${rule.rule.id}): ${rule.rule.reason}`);
  sentences.push(...byMachine(fingerprints.merges(group.topic, group.errorCode, group.fingerprint)));
  const matchIds = [...new Set(occurrences.map(({ failureMatchId }) => failureMatchId).filter((id) => id !== null))];
  if (matchIds.length > 0) sentences.push(`Reported under ${matchIds.slice(0, VALUES_SHOWN).join(", ")}.`);
  sentences.push(...resolution(group));
  const [one, ...others] = occurrences;
  const other = one && (others.find(({ errorMessage }) => errorMessage !== one.errorMessage) ?? others[0]);
  if (one && other) sentences.push(...comparison(group, one, other, fingerprints));
  return sentences;
}

function resolution({ resolvedAt, resolvedBy, resolvedIn, regressedAt, regressedIn }: Group): string[] {
  if (resolvedAt === null) return [];
  const inVersion = (version: string | null): string => (version === null ? "" : ` in version ${version}`);
  const resolved = `${resolvedBy} resolved it${inVersion(resolvedIn)} (${resolvedAt.toISOString()})`;
  if (regressedAt !== null) return [`${resolved}, and it failed again${inVersion(regressedIn)}: a regression.`];
  return [
    `${resolved}: nothing is suggested until it fails again${resolvedIn === null ? "" : `${inVersion(resolvedIn)} or later`}.`,
  ];
}

function comparison(group: Group, one: Occurrence, other: Occurrence, fingerprints: Fingerprints): string[] {
  const { variables, hidden } = why(fingerprints, failureOf(group, one), failureOf(group, other));
  const sentences: string[] = [];
  const differing = hidden.filter(({ values }) => values[0] !== values[1]);
  if (differing.length > 0) {
    const pairs = differing.slice(0, VALUES_SHOWN).map(({ placeholder, values }) => `${placeholder} (${values.join(", ")})`);
    sentences.push(`Ids, numbers and the like do not count: ${pairs.join("; ")}.`);
  }
  if (variables.length > 0) {
    const places = variables.slice(0, VALUES_SHOWN).map(({ values, seen }) => [...new Set([...values, ...seen])].join(", "));
    sentences.push(`Words that vary in the same place: ${places.join("; ")}.`);
  }
  return sentences;
}

/** Nobody decided it, so a person may take it back: a split is a rule, and rules come before what the machine learns. */
function byMachine(merges: readonly Merge[]): string[] {
  if (merges.length === 0) return [];
  const shown = merges.slice(0, VALUES_SHOWN).map(({ why: text }) => text);
  return [
    `The machine made one group of several templates, no person did: ${shown.join("; ")}. A split takes one out again, and it stays out.`,
  ];
}
