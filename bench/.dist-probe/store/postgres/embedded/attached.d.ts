import { type Clock } from "../../../platform/clock.ts";
import type { DataDirectory } from "./data-directory.ts";
export interface Registration {
    /** Says that this process is still here; makes the file again if somebody removed it. */
    touch(): Promise<void>;
    remove(): Promise<void>;
    /** Live processes of this place that use the server, this one left out. */
    others(): Promise<readonly string[]>;
}
export declare function register(directory: DataDirectory, clock: Clock): Promise<Registration>;
/**
 * Refuses a directory that a process in another container or on another machine uses: PostgreSQL cannot see such a process,
 * and would let a second server write the same files.
 */
export declare function refuseWhileUsedElsewhere(directory: DataDirectory, clock: Clock, log: (message: string) => void, signal?: AbortSignal): Promise<void>;
