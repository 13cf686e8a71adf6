import type { Binaries } from "./binaries.ts";
import type { DataDirectory } from "./data-directory.ts";
export declare const ROLE = "makegood";
/** Readable by its owner alone, and outside of `pgdata`. Undefined before the first start, and when it was lost. */
export declare function readPassword(directory: DataDirectory): Promise<string | undefined>;
export declare function makePassword(): string;
export declare function savePassword(directory: DataDirectory, password: string): Promise<void>;
/** Only under the lock, and only when `pgdata` is missing or empty. */
export declare function initialize(directory: DataDirectory, binaries: Binaries, password: string): Promise<void>;
/** What killed processes left half-made. An initdb without a parent may still write there; then the next start removes it. */
export declare function removeUnfinished(directory: DataDirectory, log: (message: string) => void): Promise<void>;
/**
 * Gives the server a new password when the file was lost: who owns the data owns the server. Only while no server runs.
 */
export declare function resetPassword(directory: DataDirectory, binaries: Binaries, password: string): Promise<void>;
