/**
 * Stops a server in an orderly way: clients are disconnected, everything is written, and only then it is reported as stopped.
 * A server that does not obey in time is told to stop at once, which loses nothing: the next start recovers from its log.
 */
import { type Clock } from "../../../platform/clock.ts";
import { type ProcessIdentity } from "./process-identity.ts";
export declare function stopServer(server: ProcessIdentity, clock: Clock, log: (message: string) => void): Promise<void>;
