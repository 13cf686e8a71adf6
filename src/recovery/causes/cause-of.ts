/** The cause of a failure, how certain it is and why. Of the signatures that fit the most certain one speaks. Pure. */
import { readCode } from "../rules/code-words.ts";
import { SHIPPED_SIGNATURES } from "./catalogue/shipped.ts";
import type { Cause } from "./cause.ts";
import { phrasesOf } from "./phrase.ts";
import { type FailureText, type ReadFailure, readFailure, spelled } from "./read-failure.ts";
import type { Signature } from "./signature.ts";

export interface FoundCause {
  readonly cause: Cause;
  /** Which kind of it, where a signature says so. */
  readonly detail: string | null;
  readonly certainty: number;
  /** A sentence for people. */
  readonly evidence: string;
  /** The id of the signature that spoke; null: only the code did, or nothing. */
  readonly signature: string | null;
}

export type CauseFinder = (failure: FailureText) => FoundCause;

/** The codes that the seeds' rules know by themselves, without a text. */
const CLASSES: readonly (readonly [code: string, cause: Cause, says: string])[] = [
  ["RATE_LIMIT", "overload_or_quota", "the receiver limits the rate"],
  ["TIMEOUT", "timeout", "no answer came in time"],
  ["AUTH", "auth_or_permission", "the receiver refuses the credentials or the right"],
  ["BUDGET", "overload_or_quota", "a budget or quota is spent"],
  ["CONNECTION", "network", "the receiver was not reached"],
  ["HTTP_5XX", "outage", "the receiver fails"],
];
/** Less than the rules of causes ask for: where nothing but such a code is known, the seeds' rules decide. */
const CODE_ONLY = 0.4;

const UNKNOWN: FoundCause = {
  cause: "unknown",
  detail: null,
  certainty: 0,
  evidence: "Nothing in it is known.",
  signature: null,
};

/** Answers why a signature fits, if it does. */
type Asked = (read: ReadFailure) => string | undefined;

function asking({ codes = [], words = [], status = [] }: Signature): Asked {
  const names = codes.map(spelled);
  const phrases = words.flatMap(phrasesOf);
  return (read) => {
    const name = names.find((each) => read.codes.has(each));
    if (name !== undefined) return `The ${read.codes.get(name)} names ${name}`;
    for (const phrase of phrases) {
      const said = phrase.find(read.words);
      if (said !== undefined) return `The text says "${said}"`;
    }
    return read.status !== undefined && status.includes(read.status) ? `The status is ${read.status}` : undefined;
  };
}

/** Makes a catalogue ready to be asked. */
export function causeFinder(signatures: readonly Signature[]): CauseFinder {
  // The sort is stable: of equals the first stays first.
  const inOrder = signatures.filter(({ enabled }) => enabled).sort((a, b) => b.certainty - a.certainty);
  const asked = inOrder.map((signature) => ({ signature, why: asking(signature) }));
  return (failure) => {
    const code = readCode(failure.errorCode);
    const known = CLASSES.find(([name]) => code.classes.has(name));
    if (known !== undefined && isBare(failure)) return ofCode(known, code.name);
    const read = readFailure(failure, known === undefined);
    for (const { signature, why } of asked) {
      const found = why(read);
      if (found === undefined) continue;
      const { cause, detail = null, certainty, says, id } = signature;
      return { cause, detail, certainty, evidence: `${found}: ${says}.`, signature: id };
    }
    return known === undefined ? UNKNOWN : ofCode(known, code.name);
  };
}

const isBare = ({ errorMessage, stackTrace }: FailureText): boolean => `${errorMessage ?? ""}${stackTrace ?? ""}`.trim() === "";

function ofCode([, cause, says]: (typeof CLASSES)[number], name: string): FoundCause {
  return { ...UNKNOWN, cause, certainty: CODE_ONLY, evidence: `The code ${name} says that ${says}.` };
}

let shipped: CauseFinder | undefined;

/** By the shipped catalogue. */
export function causeOf(failure: FailureText): FoundCause {
  shipped ??= causeFinder(SHIPPED_SIGNATURES);
  return shipped(failure);
}
