/**
 * Every limit of the kernel and every default, in one place (I10: each batch, page, payload, loop and buffer has a limit).
 * Units stand last in the name.
 */
export declare const LIMITS: {
    readonly payloadBytesMax: 1048576;
    readonly payloadDepthMax: 200;
    readonly keyBytesMax: 255;
    readonly orderingKeyBytesMax: 255;
    readonly tenantIdBytesMax: 255;
    readonly topicPartBytesMax: 100;
    readonly batchMessagesMax: 1000;
    readonly pageMax: 1000;
    readonly pageDefault: 50;
    readonly delayMsMax: number;
    readonly priorityMin: -100;
    readonly priorityMax: 100;
    readonly errorBytesMax: 2048;
    readonly reasonBytesMax: 2000;
    readonly attemptsMax: 1000;
    readonly leaseMsMin: 1000;
    readonly leaseMsMax: number;
    readonly retryAfterMsMax: 3600000;
    readonly responseBytesMax: 65536;
    /** A claim's whole prefetch of payload bytes, whatever the number of messages. */
    readonly claimBytesMax: number;
};
export declare const DEFAULTS: {
    readonly leaseMs: 30000;
    readonly attemptTimeoutMs: 15000;
    readonly attemptsMax: 10;
    readonly retryBaseMs: 1000;
    readonly retryMaxMs: 300000;
    readonly concurrency: 50;
    readonly pollMs: 1000;
    readonly drainMs: 30000;
    readonly deliveredKeptMs: number;
    readonly breakerFailures: 5;
    readonly breakerWindowMs: 60000;
    readonly breakerCooldownMs: 30000;
};
