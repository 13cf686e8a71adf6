/** What differs between two failures of one group, in facts a person can check. */
import { coarse, type Failure, type Fingerprints, messageHead } from "./fingerprint.ts";
import { hiddenIn } from "./mask.ts";
import { tokenise } from "./tokens.ts";

const HIDDEN_MAX = 20;
const SEEN_MAX = 5;

export function differences(fingerprints: Fingerprints, a: Failure, b: Failure) {
  // A failure that was never asked about is learned now.
  fingerprints.of(a);
  fingerprints.of(b);
  return { variables: variablesOf(fingerprints, a, b), hidden: hiddenPairs(a, b) };
}

/** Words in one place that are not the same, or were not in other failures. */
function variablesOf(fingerprints: Fingerprints, a: Failure, b: Failure) {
  const [ours, theirs] = [tokenise(coarse(a).masked), tokenise(coarse(b).masked)];
  const shown = fingerprints.learner(a.topic, a.errorCode)?.valuesSeen(ours) ?? [];
  const pairs = ours.slice(0, theirs.length).map(({ text }, place) => {
    const seen = shown[place] ?? [];
    return { values: [text, theirs[place]?.text ?? ""] as const, seen: seen.length > 1 ? seen.slice(0, SEEN_MAX) : [] };
  });
  return pairs.filter(({ values: [one, other], seen }) => one !== other || seen.length > 0);
}

/** What the mask hides in both, as far as the two have the same placeholders in the same order. */
function hiddenPairs(a: Failure, b: Failure) {
  const [ours, theirs] = [hiddenIn(messageHead(a.errorMessage)), hiddenIn(messageHead(b.errorMessage))];
  const parted = ours.findIndex(({ placeholder }, i) => placeholder !== theirs[i]?.placeholder);
  const alike = ours.slice(0, Math.min(parted < 0 ? ours.length : parted, HIDDEN_MAX));
  return alike.map(({ placeholder, text }, i) => ({ placeholder, values: [text, theirs[i]?.text ?? ""] as const }));
}
