/**
 * From observations to evidence, on three levels: this kind of failure, others with the same cause, and all others. On the upper levels each
 * kind has one voice at most, however often it was tried: what works is tried more often, and would drown the rest.
 */
import type { Evidence } from "./confidence.ts";
import { countsOf, type Observation, repairBefore, teachesOthers } from "./observation.ts";
import { decayed, merged, type OutcomeCounts } from "./outcome-counts.ts";
import { ALIKE, LEVELS, VOICE } from "./priors.ts";

/** Which failure is asked about: its group, if it has one, and its cause. */
interface About {
  readonly groupId: number | null;
  readonly cause: string | null;
}

/** What is known about one action. */
export interface ActionEvidence extends Evidence {
  readonly action: string;
  readonly afterRepair?: AfterRepair;
}

/** Executions of this kind that came after a repair, never counted for the action alone. */
export interface AfterRepair {
  readonly action: string;
  readonly executions: number;
  readonly healed: number;
  readonly failed: number;
  readonly last: string;
}

/** What one kind showed about one action. */
export interface Kind {
  readonly groupId: number;
  readonly cause: string | null;
  readonly action: string;
  readonly counts: OutcomeCounts;
  /** Those that say something about other kinds. */
  readonly taught?: OutcomeCounts | undefined;
}

/** `kind` with one more execution. */
export function observed(kind: Kind | undefined, observation: Observation): Kind {
  const { groupId, cause, action } = observation;
  const one = countsOf(observation);
  const taught = teachesOthers(observation) ? merged(kind?.taught, one) : kind?.taught;
  return { groupId, cause, action, counts: merged(kind?.counts, one), taught };
}

export function evidenceOf(observations: readonly Observation[], about: About, at: number): ActionEvidence[] {
  const kinds = new Map<string, Kind>();
  const repaired = new Map<string, AfterRepair>();
  for (const each of observations) {
    const { action, groupId, healed, failed } = each;
    const repair = repairBefore(each);
    const name = `${groupId} ${action}`;
    if (repair === null) kinds.set(name, observed(kinds.get(name), each));
    else if (groupId === about.groupId) {
      const sum = repaired.get(action) ?? { action, executions: 0, healed: 0, failed: 0, last: repair };
      repaired.set(action, { ...sum, executions: sum.executions + 1, healed: sum.healed + healed, failed: sum.failed + failed });
    }
  }
  const found = new Map(evidenceOfKinds(kinds.values(), about, at).map((each) => [each.action, each]));
  for (const [action, afterRepair] of repaired) found.set(action, { ...found.get(action), action, afterRepair });
  return [...found.values()];
}

/** What kinds that were heard said together. */
interface Heard {
  successes: number;
  failures: number;
}

export function evidenceOfKinds(kinds: Iterable<Kind>, about: About, at: number): ActionEvidence[] {
  const own = new Map<string, OutcomeCounts>();
  const voices: Voice[] = [];
  const [all, ofCause] = [new Map<string, Heard>(), new Map<string, Heard>()];
  for (const { groupId, cause, action, counts, taught } of kinds) {
    if (groupId === about.groupId) own.set(action, counts);
    else if (taught !== undefined) {
      const { successes, failures } = decayed(taught, at);
      const weight = (successes + failures) / (successes + failures + VOICE);
      const share = successes / (successes + failures);
      voices.push({ action, cause, weight, share });
      hear(all, action, weight, share);
      if (cause !== null && cause === about.cause) hear(ofCause, action, weight, share);
    }
  }
  const alike = alikeness(voices, all);
  return [...new Set([...own.keys(), ...all.keys()])].map((action) => ({
    action,
    own: own.get(action),
    cause: worthOf(ofCause.get(action), LEVELS.cause.worth * alike, LEVELS.cause.max, at),
    all: worthOf(all.get(action), LEVELS.all.worth, LEVELS.all.max, at),
  }));
}

function hear(heard: Map<string, Heard>, name: string, weight: number, share: number): void {
  const sum = heard.get(name);
  if (sum === undefined) heard.set(name, { successes: weight * share, failures: weight * (1 - share) });
  else {
    sum.successes += weight * share;
    sum.failures += weight * (1 - share);
  }
}

/** R3: one execution of one other kind is no pattern yet, so its voice is taken off first. */
function worthOf(heard: Heard | undefined, worth: number, max: number, at: number): OutcomeCounts | undefined {
  if (heard === undefined) return undefined;
  const weight = heard.successes + heard.failures;
  const counts = Math.min(max, worth * (weight - 1 / (1 + VOICE)));
  if (counts <= 0) return undefined;
  return { successes: (counts * heard.successes) / weight, failures: (counts * heard.failures) / weight, at };
}

interface Voice {
  readonly action: string;
  readonly cause: string | null;
  readonly weight: number;
  readonly share: number;
}

/**
 * How alike kinds with one cause have been so far, from 0 to 1: how far two of them stand off the mean of an action on the same side. What is
 * chance in one kind is not in the other, so this is the variance between causes however little each was tried.
 */
function alikeness(voices: readonly Voice[], all: ReadonlyMap<string, Heard>): number {
  const cells = new Map<string, { off: number; offSquares: number; weight: number; squares: number; of: number }>();
  for (const { action, cause, weight, share } of voices) {
    if (cause === null) continue;
    const { successes, failures } = all.get(action) as Heard;
    const off = weight * (share - successes / (successes + failures));
    const name = `${cause} ${action}`;
    const cell = cells.get(name) ?? { off: 0, offSquares: 0, weight: 0, squares: 0, of: successes + failures };
    cells.set(name, cell);
    cell.off += off;
    cell.offSquares += off * off;
    cell.weight += weight;
    cell.squares += weight * weight;
  }
  let [product, pairs] = [ALIKE.pairs * ALIKE.before, ALIKE.pairs];
  for (const { off, offSquares, weight, squares, of } of cells.values()) {
    product += off * off - offSquares;
    // Kinds of this cause are part of the mean: where there are no others, they say nothing about it.
    pairs += (weight * weight - squares) * (1 - weight / of) ** 2;
  }
  return Math.min(1, Math.max(0, (product / pairs - ALIKE.none) / (ALIKE.full - ALIKE.none)));
}

/** Such as "retry_exponential after a repair healed 286 of 286 messages in 1 execution (…)". */
export function repairNotes(evidence: readonly ActionEvidence[]): string[] {
  return evidence.flatMap(({ action, afterRepair }) => {
    if (afterRepair === undefined) return [];
    const { executions, healed, failed, last } = afterRepair;
    const times = `${executions} execution${executions === 1 ? "" : "s"}`;
    return [
      `${action} after a repair healed ${healed} of ${healed + failed} messages in ${times} (${last}); this does not count for ${action} alone`,
    ];
  });
}

/** Of all groups together, as they weigh at the newest of them; by action. */
export function totalsOf(observations: readonly Observation[]) {
  const sums = new Map<string, OutcomeCounts>();
  for (const each of observations) {
    if (repairBefore(each) === null) sums.set(each.action, merged(sums.get(each.action), countsOf(each)));
  }
  const rows = [...sums].map(([action, { successes, failures }]) => ({ action, successes, failures }));
  return rows.sort((a, b) => (a.action < b.action ? -1 : 1));
}
