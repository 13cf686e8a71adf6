import type { DataDirectory } from "./data-directory.ts";
export interface Binaries {
    readonly initdb: string;
    readonly postgres: string;
    /** As PostgreSQL tells it, "18.4". */
    readonly version: string;
    readonly major: number;
}
/** The folder `native` of the package for this platform. */
export declare function locateNative(): string;
export declare function usableBinaries(native: string, directory: DataDirectory, log: (message: string) => void): Promise<Binaries>;
