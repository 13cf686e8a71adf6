/** Free text is joined by this: it cannot occur in JSON text, and keys that contain it travel as JSON instead. */
export declare const SEPARATOR = "\u001E";
export interface Short {
    readonly keyed: boolean;
    readonly tx: boolean;
}
/** Parameters: id, lane, payload, delay ms, traceparent, schema version [, topic id, tenant, key, hash]. Returns how many were inserted. */
export declare function enqueueOne(s: string, clock: string, { keyed, tx }: Short): string;
export interface Parts {
    readonly keyed: boolean;
    readonly ordered: boolean;
    readonly traced: boolean;
    readonly versioned: boolean;
    readonly handedDown: boolean;
    readonly tx: boolean;
    /** Free text as JSON arrays instead of separated text: some key contains the separator. */
    readonly json: boolean;
}
/**
 * Parameters: ids, lanes, delays, payloads [, keys, hashes] [, ordering keys] [, traceparents] [, versions] [, codes, errors].
 * Returns the ids that were not inserted, comma separated, and whether the statement ran in a transaction block.
 */
export declare function enqueueBatch(s: string, clock: string, parts: Parts): string;
/** Whose the keys are. Asked only after an insert came back short, in a second statement: the first one's snapshot cannot see a row that committed meanwhile. */
export declare function findKeys(s: string): string;
/** Whether an id that exists already carries the same payload: then it is this very message, accepted before. */
export declare function sameMessage(s: string): string;
