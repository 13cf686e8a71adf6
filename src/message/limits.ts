/**
 * Every limit of the kernel and every default, in one place (I10: each batch, page, payload, loop and buffer has a limit).
 * Units stand last in the name.
 */

export const LIMITS = {
  payloadBytesMax: 1_048_576,
  payloadDepthMax: 200,
  keyBytesMax: 255,
  orderingKeyBytesMax: 255,
  tenantIdBytesMax: 255,
  topicPartBytesMax: 100,
  batchMessagesMax: 1_000,
  pageMax: 1_000,
  pageDefault: 50,
  delayMsMax: 366 * 24 * 3_600_000,
  priorityMin: -100,
  priorityMax: 100,
  errorBytesMax: 2_048,
  reasonBytesMax: 2_000,
  attemptsMax: 1_000,
  leaseMsMin: 1_000,
  leaseMsMax: 12 * 3_600_000,
  retryAfterMsMax: 3_600_000,
  responseBytesMax: 65_536,
  /** Tenants of one topic that are held alone; one more, and the topic is. */
  heldTenantsMax: 20,
  heldReasonCharsMax: 200,
  /** A claim's whole prefetch of payload bytes, over all its messages. */
  claimBytesMax: 16 * 1_048_576,
  /** Suspects of killing workers that are claimed together, before each is claimed alone. */
  suspectGroupMax: 8,
  /** Notes of workers that a store keeps, and topics that one note names of each kind. */
  workersMax: 500,
  noteTopicsMax: 2_000,
} as const;

export const DEFAULTS = {
  leaseMs: 30_000,
  attemptTimeoutMs: 15_000,
  attemptsMax: 10,
  retryBaseMs: 1_000,
  retryMaxMs: 300_000,
  concurrency: 50,
  pollMs: 1_000,
  drainMs: 30_000,
  deliveredKeptMs: 7 * 24 * 3_600_000,
  /** Open dead letters before health says that there are many. */
  deadLettersMax: 100,
  breakerFailures: 5,
  breakerWindowMs: 60_000,
  breakerCooldownMs: 30_000,
} as const;
