/**
 * First in, first out, without moving what stays: taking from the front of a plain array costs its length.
 */
export declare class Fifo<T> {
    #private;
    get length(): number;
    push(item: T): void;
    first(): T | undefined;
    shift(): T | undefined;
    /** Takes out what `chosen` picks, oldest first. */
    takeWhere(chosen: (item: T, index: number) => boolean): T[];
}
