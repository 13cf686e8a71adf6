/**
 * Reads the fields of a parsed JSON object one by one and collects everything that is wrong, so that a person mends a
 * topic or a configuration once and not once for every mistake.
 */
export interface FieldFault {
    /** A path like `sink.timeout_ms`. */
    readonly field: string;
    readonly detail: string;
}
export interface Fields {
    readonly faults: FieldFault[];
    /** Own members only: nothing on a prototype is ever seen. */
    text(name: string): string | undefined;
    integer(name: string, min: number, max: number): number | undefined;
    boolean(name: string): boolean | undefined;
    oneOf<T extends string>(name: string, allowed: readonly T[]): T | undefined;
    list<T>(name: string, max: number, isOne: (value: unknown) => value is T, what: string): T[] | undefined;
    object(name: string): Fields | undefined;
    entries(): [string, unknown][];
    has(name: string): boolean;
    raw(name: string): unknown;
    fault(name: string, detail: string): void;
    /** Call last: names every member that nobody asked for. `silent` are allowed and ignored. */
    refuseUnknown(silent?: readonly string[]): void;
}
/** Undefined, and one fault, when `value` is not an object. */
export declare function readFields(value: unknown, path: string, faults: FieldFault[]): Fields | undefined;
/** ` (did you mean x?)` when one of the known names is near. */
export declare function suggestion(name: string, known: Iterable<string>): string;
