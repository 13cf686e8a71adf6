import { type Clock } from "../../../platform/clock.ts";
import type { DataDirectory } from "./data-directory.ts";
import { type ProcessIdentity } from "./process-identity.ts";
export interface FoundServer {
    readonly identity: ProcessIdentity;
    /** Undefined in the first moments: PostgreSQL writes it once it listens. */
    readonly port: number | undefined;
    readonly status: "starting" | "ready" | "stopping";
}
export declare function findServer({ pgdata }: DataDirectory): Promise<FoundServer | undefined>;
/**
 * Changes a stale file that PostgreSQL would not take over by itself. Only under the lock, before a server is started: beside
 * one that is starting, its own file could be overwritten.
 *
 * Our own pid is put in place of the stale one: PostgreSQL knows that the pid of its parent cannot be another server's. The
 * rest of the file stays, because from it PostgreSQL checks that no process of the old server still uses its shared memory.
 */
export declare function takeOverStale(directory: DataDirectory, clock: Clock, log: (message: string) => void): Promise<void>;
/** Backends that outlived their postmaster: they hold its shared memory, so no new server can start. Linux only. */
export declare function findOrphans(pgdata: string): Promise<readonly number[]>;
