/** Groups as people see them: with their candidate, their newest occurrences, and why their failures are together. */
import { MakegoodError } from "../../message/errors.ts";
import { failureOf, type Occurrence } from "../failures/failure.ts";
import type { FailurePlaces } from "../failures/place-failures.ts";
import { differences } from "../fingerprint/differences.ts";
import type { Fingerprints } from "../fingerprint/fingerprint.ts";
import { OVERFLOW } from "../fingerprint/learner.ts";
import type { Records } from "../records.ts";
import type { Group } from "./group.ts";
import type { RegroupDeps } from "./merge.ts";
import type { GroupRuleBook } from "./rule-documents.ts";

type GroupDetailDeps = Pick<RegroupDeps, "recovery" | "groupRules"> & { readonly places: FailurePlaces };

const NEWEST_OCCURRENCES = 20;
const VALUES_SHOWN = 5;

export async function existingGroup(recovery: Pick<Records, "group">, groupId: number): Promise<Group> {
  const group = await recovery.group(groupId);
  if (group === null) throw new MakegoodError("group_not_found", `There is no group ${groupId}.`, { groupId });
  return group;
}

export async function groupDetail({ recovery, places, groupRules }: GroupDetailDeps, groupId: number) {
  const group = await existingGroup(recovery, groupId);
  const [candidate, { data: occurrences }, book, fingerprints] = await Promise.all([
    recovery.candidateOf(groupId),
    recovery.occurrences(groupId, { limit: NEWEST_OCCURRENCES }),
    groupRules(),
    places.trial(group),
  ]);
  return { group, candidate, occurrences, why: explained(group, occurrences, fingerprints, book) };
}

function explained(group: Group, occurrences: readonly Occurrence[], fingerprints: Fingerprints, book: GroupRuleBook): string[] {
  const { topic, sink, errorCode, template, topFrame } = group;
  const receiver = sink === "" ? "no named sink" : `sink ${sink}`;
  const sentences = [`They share topic ${topic}, ${receiver}, error code ${errorCode} and the text "${template}".`];
  if (template === OVERFLOW) {
    sentences.push("This is what fitted no template after too many different texts: they may be different failures.");
  }
  if (topFrame !== null) sentences.push(`The topmost frame of their stack is ${topFrame}.`);
  const rule = group.groupRule === null ? undefined : book.byId.get(group.groupRule)?.rule;
  if (rule !== undefined) sentences.push(`A person decided so (${rule.kind} ${rule.id}): ${rule.reason}`);
  const merges = fingerprints.merges(topic, errorCode, group.fingerprint);
  if (merges.length > 0) {
    // Nobody decided it, so a person may take it back: a split is a rule, and rules come before what the machine learns.
    const shown = merges.slice(0, VALUES_SHOWN).map((merge) => merge.why);
    const taken = "A split takes one out again, and it stays out.";
    sentences.push(`The machine made one group of several templates, no person did: ${shown.join("; ")}. ${taken}`);
  }
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
  const later = resolvedIn === null ? "" : `${inVersion(resolvedIn)} or later`;
  return [`${resolved}: nothing is suggested until it fails again${later}.`];
}

function comparison(group: Group, one: Occurrence, other: Occurrence, fingerprints: Fingerprints): string[] {
  const { variables, hidden } = differences(fingerprints, failureOf(group, one), failureOf(group, other));
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
