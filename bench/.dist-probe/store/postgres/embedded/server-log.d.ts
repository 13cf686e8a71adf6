import type { DataDirectory } from "./data-directory.ts";
export declare function logPath(directory: DataDirectory): string;
/** Keeps what is there as `postgres.log.1` and starts again from nothing, once it is too long. */
export declare function boundLog(directory: DataDirectory): Promise<void>;
/** Opens the log for a server that is about to start, and tells where its own lines begin. */
export declare function openLog(directory: DataDirectory): Promise<{
    fd: number;
    from: number;
    close(): Promise<void>;
}>;
/** The last of what the server wrote since `from`. */
export declare function readLog(directory: DataDirectory, from: number): Promise<string>;
