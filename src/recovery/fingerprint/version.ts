/** The version of mask, tokens, thresholds and learner together. It is part of every key: a change of any of them is a new number. */
export const FINGERPRINT_VERSION = 2;
/** Of the keys of rules: what a person decided keeps its group, however fingerprints are made. */
export const RULE_VERSION = 1;
