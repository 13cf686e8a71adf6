import { type Clock } from "../../../platform/clock.ts";
export interface LockOptions {
    readonly clock: Clock;
    readonly log: (message: string) => void;
    readonly signal?: AbortSignal | undefined;
    /** Gives a file that root made to the owner of the directory, so that the owner can remove it later. */
    readonly own: (path: string) => Promise<void>;
}
export declare function withLock<T>(directory: string, options: LockOptions, run: () => Promise<T>): Promise<T>;
