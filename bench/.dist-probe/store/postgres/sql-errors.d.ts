/** Conflicts between statements that are ours to try again: serialization, deadlock, lock timeout, cancelled for a lock. */
export declare function isTransient(thrown: unknown): boolean;
export declare function isMissingPartition(thrown: unknown): boolean;
/** The connection went away (or never answered) after the statement may have been sent. */
export declare function isConnectionLoss(thrown: unknown): boolean;
/** `wrote`: the statement changes something, so that a lost connection leaves its outcome unknown. */
export declare function asStoreError(thrown: unknown, during: string, wrote: boolean): unknown;
