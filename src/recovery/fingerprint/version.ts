/** The version of mask, tokens, thresholds and learner together. It is part of every key: a change of any of them is a new number. */
export const FINGERPRINT_VERSION = 1;
