import type { DataDirectory } from "./data-directory.ts";
/**
 * First beside the data: the server's user reaches it, it stays as long as the data does, and nothing sweeps it. A data
 * volume may forbid programs (noexec); then the system's temporary folder.
 */
export declare function cachePlaces(directory: DataDirectory): readonly string[];
/** The copy's `native` folder; made if it is missing or no longer whole. */
export declare function copyNative(native: string, place: string, log: (message: string) => void): Promise<string>;
