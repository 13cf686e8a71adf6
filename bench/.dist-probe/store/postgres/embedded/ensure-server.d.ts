import { type ServerContext } from "./launch.ts";
import type { ProcessIdentity } from "./process-identity.ts";
export interface RunningServer {
    readonly identity: ProcessIdentity;
    readonly port: number;
    /** It ran before we came. */
    readonly attached: boolean;
}
export declare function ensureServer(context: ServerContext, signal?: AbortSignal): Promise<RunningServer>;
